// SPDX-License-Identifier: Apache-2.0
// Writes a function in TensorFlow's ops. Each op is translated to TFLite's at once where possible, so that
// shapes are known while layers are built; the other ops stay opaque nodes for the passes.
//
// The first failure sticks: from then on nothing is emitted and values are kNoValue, so that layers need not
// check after each op.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "converter/import/tables/translate.h"

namespace fusebox::keras {

// One dimension of a shape that is asked for: a size, the size of a value's dimension at run time, or what is
// left over.
struct Extent {
  int64_t size = Shape::kUnknown;
  ValueId source = kNoValue;
  int axis = 0;
};

class Emitter {
 public:
  Emitter(Module& module, Function& function, Registry& registry, Status& status, std::string layer = {})
      : module_(module),
        registry_(registry),
        status_(status),
        t_(module, function, registry),
        layer_(std::move(layer)) {}

  Function& function() { return t_.f(); }
  Module& module() { return module_; }
  Registry& registry() { return registry_; }
  // Where the next nodes come from: the path of a Keras layer.
  void SetLayer(std::string path) { layer_ = std::move(path); }
  const std::string& layer() const { return layer_; }

  bool ok() const { return status_.has_value(); }
  Status& status() { return status_; }
  void Fail(Error error);
  void Refuse(std::string why) { Fail({Code::kUnsupported, std::move(why)}); }
  void Reject(std::string why) { Fail({Code::kInvalid, std::move(why)}); }

  std::vector<ValueId> Ops(std::string_view op, std::vector<ValueId> operands, Attrs attrs, size_t results);
  ValueId Op(std::string_view op, std::vector<ValueId> operands, Attrs attrs = {});
  // A node of the graph's own vocabulary (loops, composites) with results of these types.
  std::vector<ValueId> Node(fusebox::Op op, std::string name, std::vector<ValueId> operands,
                            std::vector<Type> types, Attrs attrs, std::string body = {});

  ValueId Const(const Tensor& tensor, std::string name = {}) { return t_.Const(tensor, std::move(name)); }
  ValueId I32(int64_t value) { return t_.I32Scalar(value); }
  ValueId I32s(const std::vector<int64_t>& values) { return t_.I32(values); }
  ValueId F32(double value) { return t_.Scalar(DType::kF32, value); }
  ValueId Scalar(DType dtype, double value);

  const Type& type(ValueId v) const;
  DType dtype(ValueId v) const { return type(v).dtype; }
  int rank(ValueId v);               // 0 after a failure; an unknown rank is one
  int64_t dim(ValueId v, int axis);  // -1 when unknown; negative axes count from the end

  Extent size(ValueId v, int axis);
  ValueId SizeValue(const Extent&);                // an i32 scalar
  ValueId ShapeValue(const std::vector<Extent>&);  // i32 [rank]
  ValueId Reshape(ValueId v, const std::vector<Extent>& shape);
  ValueId Transpose(ValueId v, const std::vector<int64_t>& perm);
  // [begin, end) along one axis; negative numbers count from the end, end 0 is the end.
  ValueId Slice(ValueId v, int axis, int64_t begin, int64_t end);
  ValueId Cast(ValueId v, DType to);
  ValueId Concat(std::vector<ValueId> parts, int axis);

 private:
  // With the dimensions perm[at] and its neighbor as one.
  ValueId TransposeMerged(ValueId v, const std::vector<int64_t>& perm, size_t at);

  Module& module_;
  Registry& registry_;
  Status& status_;
  converter::Translation t_;
  std::string layer_;
};

}  // namespace fusebox::keras
