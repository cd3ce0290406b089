// SPDX-License-Identifier: Apache-2.0
// write_keras FILE.keras: a Keras 3 model of one LSTM, as stand_in.py describes it.
#include <cstdio>

#include "tests/testing/keras_cases.h"

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

int Write(const char* path) {
  constexpr int kInputs = 4;
  constexpr int kUnits = 3;
  const nlohmann::json layer = LayerEntry("LSTM", {{"units", kUnits}, {"return_sequences", true}}, "lstm");
  WriteKeras(path, SequentialConfig({1, 5, kInputs}, nlohmann::json::array({layer})),
             {{"layers/lstm/cell/vars/0", Weight(0, {kInputs, 4 * kUnits})},
              {"layers/lstm/cell/vars/1", Weight(1, {kUnits, 4 * kUnits})},
              {"layers/lstm/cell/vars/2", Weight(2, {4 * kUnits})}});
  return 0;
}

}  // namespace
}  // namespace fusebox::testing

int main(int argc, char** argv) {
  if (argc == 2) return fusebox::testing::Write(argv[1]);
  std::fprintf(stderr, "usage: write_keras FILE.keras\n");
  return 2;
}
