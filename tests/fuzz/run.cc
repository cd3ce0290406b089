// SPDX-License-Identifier: Apache-2.0
// A file that can be read is run twice, on small numbers.
#include <algorithm>
#include <random>

#include "host/graph/npy.h"
#include "host/model.h"
#include "host/session.h"
#include "host/tflite/tflite.h"
#include "tests/fuzz/targets.h"

namespace fusebox::fuzz {
namespace {

constexpr size_t kLargest = size_t{1}
                            << 20;  // bytes of one value: time goes by into many models, not into a large one

const std::shared_ptr<Registry>& Kernels() {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    return *Registry::Create(config);
  }();
  return registry;
}

bool RepeatsValues(const Node& node) {
  return node.is(Op::kBroadcastTo) || node.is(Op::kFill) || node.is(Op::kTile);
}

bool HasStrings(const Function& function, const Node& node) {
  return std::ranges::any_of(node.operands, [&](ValueId id) {
    return id != kNoValue && function.value(id).type.dtype == DType::kString;
  });
}

// Models whose time or memory nobody can tell by looking at them are left alone.
bool IsSmall(const Module& module) {
  for (const auto& function : module.functions) {
    for (const auto& node : function->nodes) {
      if (node->is(Op::kWhile) || (RepeatsValues(*node) && HasStrings(*function, *node))) return false;
    }
    for (ValueId id = 0; id < function->value_count(); ++id) {
      const Type& type = function->value(id).type;
      if (!std::ranges::all_of(type.shape.dims(), [](int64_t dim) { return dim < 1024; })) return false;
      if (const auto bytes = ByteSize(type); type.shape.is_static() && bytes && *bytes > kLargest)
        return false;
    }
  }
  return true;
}

Buffer Words(int64_t count, std::mt19937& random) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < count && i < int64_t{kLargest}; ++i)
    words.emplace_back(random() % 4, static_cast<char>('a' + random() % 3));
  return PackStrings(words);
}

Tensor Numbers(const Type& declared, std::mt19937& random) {
  Type type = declared;
  if (!type.shape.ranked()) type.shape = Shape({2});
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? 2 : dim;
  if (type.dtype == DType::kString) return {type, Words(type.shape.element_count().value_or(0), random)};
  const size_t size = ByteSize(type).value_or(0);
  return {type, Buffer::Make(size, [&](std::span<std::byte> bytes) {
            for (size_t i = 0; i < bytes.size(); ++i) {
              // Floats from 2 to 4 and below 0, whole numbers from -3 to 3.
              const bool float_top = type.dtype == DType::kF32 && i % 4 == 3;
              const bool other = BitsOf(type.dtype) > 8 && i % (BitsOf(type.dtype) / 8) != 0;
              bytes[i] = float_top ? std::byte(random() % 2 == 0 ? 0x40 : 0xBF)
                         : other   ? std::byte(0)
                                   : std::byte(random() % (type.dtype == DType::kBool ? 2 : 4));
            }
          })};
}

}  // namespace

Status RunModel(std::span<const std::byte> bytes) {
  FUSEBOX_ASSIGN(auto module, tflite::Read(Buffer::Copy(bytes), "fuzz.tflite"));
  if (!IsSmall(*module)) return {};
  FUSEBOX_ASSIGN(const auto model,
                 Model::FromModule(std::move(module),
                                   {.registry = Kernels(), .delegates = std::vector<Config::Delegate>{}}));
  FUSEBOX_ASSIGN(const auto session, Session::Create(model));
  std::mt19937 random(1);
  for (int run = 0; run < 2; ++run) {
    int input = 0;
    for (const Session::Slot& slot : session->inputs())
      FUSEBOX_TRY(session->SetInput(input++, Numbers(slot.type, random)));
    FUSEBOX_TRY(session->Prepare());
    if (session->arena_bytes() > 16 * kLargest) return {};
    FUSEBOX_TRY(session->Run());
    for (size_t i = 0; i < session->outputs().size(); ++i) {
      const auto value = session->output(static_cast<int>(i));
      if (!value) continue;
      // Every byte is looked at, where a sanitizer can see it.
      volatile std::byte sum{};
      for (const std::byte byte : value->data.bytes()) sum = sum ^ byte;
    }
  }
  return {};
}

}  // namespace fusebox::fuzz
