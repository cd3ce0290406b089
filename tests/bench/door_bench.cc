// SPDX-License-Identifier: Apache-2.0
// The cost of a call through TensorFlow Lite's C API over the same call through <fusebox/c.h>, which the C++
// layer calls inline: set an input, run, read an output.
//
//   door_bench [--seconds S]
//
// Both run a NEG of four floats, in alternating rounds of one process.
#include <cstdlib>
#include <cstring>
#include <string>

#include "fusebox/c.h"
#include "fusebox/tflite/c/c_api.h"
#include "tests/bench/interleave.h"
#include "tests/bench/row.h"
#include "tests/doors/models.h"

namespace {

using fusebox::Status;
using fusebox::bench::Interleave;
using fusebox::bench::WriteRow;

constexpr int kCalls = 100;  // per sample: a call takes less than the clock resolves well

int Measure(double seconds) {
  const std::string bytes = fusebox::doors::ChainModel(1, 4);
  fusebox_model* model = nullptr;
  fusebox_session* session = nullptr;
  if (fusebox_model_from_copy(bytes.data(), bytes.size(), "{\"delegates\": []}", nullptr, &model, nullptr) !=
          FUSEBOX_OK ||
      fusebox_session_create(model, nullptr, nullptr, &session, nullptr) != FUSEBOX_OK)
    return 2;
  TfLiteModel* file = TfLiteModelCreate(bytes.data(), bytes.size());
  TfLiteInterpreter* interpreter = TfLiteInterpreterCreate(file, nullptr);
  if (interpreter == nullptr || TfLiteInterpreterAllocateTensors(interpreter) != kTfLiteOk) return 2;
  const float values[4] = {1, 2, 3, 4};
  float results[4];
  const auto door = [&]() -> Status {
    for (int i = 0; i < kCalls; ++i) {
      TfLiteTensorCopyFromBuffer(TfLiteInterpreterGetInputTensor(interpreter, 0), values, sizeof values);
      if (TfLiteInterpreterInvoke(interpreter) != kTfLiteOk) return fusebox::Internal("Invoke failed");
      TfLiteTensorCopyToBuffer(TfLiteInterpreterGetOutputTensor(interpreter, 0), results, sizeof results);
    }
    return {};
  };
  const auto own = [&]() -> Status {
    for (int i = 0; i < kCalls; ++i) {
      fusebox_tensor output = FUSEBOX_TENSOR;
      if (fusebox_session_set_input(session, 0, values, sizeof values, nullptr) != FUSEBOX_OK ||
          fusebox_session_run(session, nullptr) != FUSEBOX_OK ||
          fusebox_session_output(session, 0, &output, nullptr) != FUSEBOX_OK)
        return fusebox::Internal("run failed");
      std::memcpy(results, output.data, sizeof results);
    }
    return {};
  };
  const auto rounds = Interleave(door, own, seconds, 1);
  if (!rounds) return 3;
  for (size_t i = 0; i < rounds->size(); ++i) {
    const double over = ((*rounds)[i].a - (*rounds)[i].b) * 1000 / kCalls;
    WriteRow({"door", "call", "over the C functions", "us"}, fusebox::bench::kOurs, static_cast<int>(i),
             over);
    WriteRow({"door", "call", "time", "us"}, fusebox::bench::kOurs, static_cast<int>(i),
             (*rounds)[i].a * 1000 / kCalls);
  }
  fusebox_session_free(session);
  fusebox_model_free(model);
  TfLiteInterpreterDelete(interpreter);
  TfLiteModelDelete(file);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool given = argc == 3 && std::string(argv[1]) == "--seconds";
  return Measure(given ? std::atof(argv[2]) : 2);
}
