// SPDX-License-Identifier: Apache-2.0
// repeat RUNS lstm|lstm8|lstm_int ENGINE UNITS | repeat RUNS net ENGINE FILE [PLUGIN...]: runs a job RUNS
// times and prints nothing, for instructions.py, which counts what two numbers of runs differ by. lstm8: with
// 8-bit weights; lstm_int: in integers. ENGINE: ours, tflite, or for the first two also onnx; their libraries
// are in FUSEBOX_PEER_DIR. One thread.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "tests/bench/lstm_engine.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::bench {
namespace {

using Job = std::function<void()>;

void Check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}
template <class T>
T Check(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

std::string Peer(const char* library) {
  const char* const folder = std::getenv("FUSEBOX_PEER_DIR");
  if (folder == nullptr) throw std::runtime_error("FUSEBOX_PEER_DIR is not set");
  return std::string(folder) + "/" + library;
}

Job Lstm(std::string_view engine, int units, LstmForm form) {
  constexpr int kSteps = 128;
  const LstmProblem problem = RandomProblem(kSteps, units, form);
  std::shared_ptr<LstmEngine> made = engine == "ours" ? OurEngine(problem)
                                     : engine == "tflite"
                                         ? TfLiteEngine(problem, Peer("libtensorflowlite_c.so"))
                                         : OnnxEngine(problem, Peer("libonnxruntime.so"));
  return [made] { made->Run(); };
}

Job Net(std::string_view engine, const std::string& file, const std::vector<std::string>& plugins) {
  std::shared_ptr<Session> session = Check(testing::Open(file, Check(testing::Plugins(plugins))));
  const testing::Tensors inputs = testing::RandomInputs(*session, 1);
  if (engine == "ours") {
    Check(testing::Invoke(*session, inputs));
    return [session] { Check(session->Run()); };
  }
  std::shared_ptr<testing::Stock> stock =
      Check(engine == "tflite" ? testing::Stock::Open(file) : testing::Stock::WithXnnpack(file));
  Check(stock->Invoke(inputs));
  return [stock] { Check(stock->Run()); };
}

Job MakeJob(const std::vector<std::string>& arguments) {
  const std::string& job = arguments[1];
  if (job == "net") return Net(arguments[2], arguments[3], {arguments.begin() + 4, arguments.end()});
  const LstmForm form = job == "lstm8"      ? LstmForm::kBytes
                        : job == "lstm_int" ? LstmForm::kIntegers
                                            : LstmForm::kFloats;
  return Lstm(arguments[2], std::atoi(arguments[3].c_str()), form);
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: repeat RUNS lstm|lstm8|lstm_int|net ENGINE UNITS|FILE [PLUGIN...]\n");
    return 2;
  }
  const int runs = std::atoi(arguments[0].c_str());
  const Job job = MakeJob(arguments);
  for (int i = 0; i < runs; ++i) job();
  return 0;
}

}  // namespace
}  // namespace fusebox::bench

int main(int argc, char** argv) {
  try {
    return fusebox::bench::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "repeat: %s\n", error.what());
    return 3;
  }
}
