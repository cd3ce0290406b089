// SPDX-License-Identifier: Apache-2.0
// write_keras FILE.keras: a Keras 3 model of one LSTM, as stand_in.py describes it.
#include <cstdio>

#include "tests/testing/keras_writer.h"

namespace fusebox::testing {
namespace {

// Element i of weight `number`: ((37 i + 11 number) mod 101 - 50) / 100.
Tensor Weight(int number, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((37 * i + 11 * number) % 101 - 50) / 100.0F);
  return {{DType::kF32, Shape(dims)}, Buffer::Of<float>(values)};
}

constexpr const char* kConfig = R"({
  "class_name": "Sequential",
  "config": {"name": "model", "layers": [
    {"class_name": "InputLayer", "config": {"name": "x", "dtype": "float32", "batch_input_shape": [1, 5, 4]}},
    {"class_name": "LSTM", "config": {"name": "lstm", "units": 3, "return_sequences": true}}]}})";

void Write(const char* path) {
  WriteKeras(path, nlohmann::json::parse(kConfig),
             {{"layers/lstm/cell/vars/0", Weight(0, {4, 12})},
              {"layers/lstm/cell/vars/1", Weight(1, {3, 12})},
              {"layers/lstm/cell/vars/2", Weight(2, {12})}});
}

}  // namespace
}  // namespace fusebox::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_keras FILE.keras\n");
    return 2;
  }
  fusebox::testing::Write(argv[1]);
  return 0;
}
