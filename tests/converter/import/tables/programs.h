// SPDX-License-Identifier: Apache-2.0
// Cases of source ops that depend on others: ops on a variable, tensor list or lookup table, and ops that
// sample or select. A program runs after all passes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/converter/import/tables/translate_cases.h"
#include "tests/converter/passes/bench.h"

namespace fusebox::converter {

// Adds source ops to the function of a program.
class ProgramWriter {
 public:
  explicit ProgramWriter(Bench& bench) : bench_(bench), f_(bench.Add("main")) {}

  ValueId In(const Type& type) { return f_.AddInput(type); }
  ValueId C(const Tensor& tensor) { return f_.AddConst(tensor); }
  // Results of unknown type, or of `type`.
  std::vector<ValueId> Ops(const std::string& op, std::vector<ValueId> operands, Attrs attrs, size_t results,
                           const Type& type = {}) {
    Node& node =
        f_.AddNode(Op::kOpaque, std::move(operands), std::vector<Type>(results, type), std::move(attrs));
    node.name = op;
    return {node.results.begin(), node.results.end()};
  }
  ValueId One(const std::string& op, std::vector<ValueId> operands, Attrs attrs = {}, const Type& type = {}) {
    return Ops(op, std::move(operands), std::move(attrs), 1, type)[0];
  }
  // The handle of a variable with this initial value.
  ValueId Variable(const Tensor& value) {
    const std::string name = "v" + std::to_string(bench_.module.variables.size());
    bench_.module.variables.push_back({name, "", value.type, value.data});
    return Handle(f_, name);
  }
  void Out(ValueId v) { f_.outputs.push_back(v); }
  void Out(const std::vector<ValueId>& values) {
    f_.outputs.insert(f_.outputs.end(), values.begin(), values.end());
  }
  void Finish() { bench_.Sign(f_); }

 private:
  Bench& bench_;
  Function& f_;
};

struct Program {
  using Outputs = std::vector<Tensor>;
  std::string op;  // tested table row
  std::function<void(ProgramWriter&)> write;
  std::vector<Tensor> inputs;
  std::function<void(const Outputs&)> check;  // checks the last run
  int runs = 1;
};

std::vector<Program> StatePrograms();
std::vector<Program> LookupPrograms();
std::vector<Program> RandomPrograms();
std::vector<Program> SuppressionPrograms();

// Compares all outputs with expected values, within 1e-5.
std::function<void(const Program::Outputs&)> Are(std::vector<std::vector<double>> expected);

}  // namespace fusebox::converter
