// SPDX-License-Identifier: Apache-2.0
// LSH_PROJECTION: bits from locality-sensitive hashes. Bit j of hash i is the sign of the weighted sum of
// fingerprints of (seed[i, j], item), over all items.
#include <cstring>
#include <string>

#include "plugins/common/fingerprint.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/kernels.h"

namespace fusebox::cpu {
namespace {

// Operands: seeds f32 [hashes, bits], items [n, ...] of any type, weights f32 [n] (absent: 1). Result i32:
// each bit ([hashes * bits], DENSE), or each hash's number, plus i << bits ([hashes], SPARSE).
struct LshProjection {
  static constexpr std::string_view builtin = "LSH_PROJECTION";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;
  static constexpr Types<float> kF32{};

  static bool IsSparse(const Node& n) { return n.attrs().s("type", "UNKNOWN") == "SPARSE"; }

  static void supports(const Node& n) {
    if (!IsSparse(n) && n.attrs().s("type", "UNKNOWN") != "DENSE")
      throw Reject{"ATTR", "is neither SPARSE nor DENSE", "attr type"};
    RequireDtype(n, 0, kF32);
    RequireDtype(n, 2, kF32);
    if (n.in_count() > 1 && ElementSize(n.in(1).dtype()) == 0) RejectDtype(n.in(1).dtype(), 1);
  }

  static void infer(const Node& n, Infer& out) {
    Arity(n, 2, 3);
    const Tensor seeds = n.in(0);
    const Tensor items = n.in(1);
    if (seeds.rank() >= 0 && seeds.rank() != 2)
      Fail("rank " + std::to_string(seeds.rank()) + ", expected 2", Operand(0));
    if (items.rank() == 0) Fail("is a scalar", Operand(1));
    if (n.has_in(2) && n.in(2).is_static() && items.rank() > 0)
      SameDim(Count(n.in(2)), items.dim(0), "the weights and the items");
    if (seeds.rank() < 0) return out.set(0, FBX_I32, {-1});
    if (seeds.dim(1) > 32) Fail(std::to_string(seeds.dim(1)) + " bits, expected up to 32", Operand(0));
    out.set(0, FBX_I32, {IsSparse(n) ? seeds.dim(0) : Count(seeds)});
  }

  void invoke(const Node& n) const {
    const int64_t hashes = n.in(0).dim(0);
    const int64_t bits = n.in(0).dim(1);
    const float* seed = n.in(0).data<const float>();
    int32_t* to = n.out(0).data<int32_t>();
    std::string key;
    for (int64_t i = 0; i < hashes; ++i) {
      uint64_t number = 0;
      for (int64_t j = 0; j < bits; ++j, ++seed) {
        const bool bit = Sum(n, *seed, key) > 0;
        number = number << 1 | (bit ? 1u : 0u);
        if (!IsSparse(n)) *to++ = bit ? 1 : 0;
      }
      if (IsSparse(n))
        *to++ = static_cast<int32_t>(static_cast<uint32_t>(number + (static_cast<uint64_t>(i) << bits)));
    }
  }

 private:
  static double Sum(const Node& n, float seed, std::string& key) {
    const Tensor items = n.in(1);
    const int64_t count = items.dim(0);
    if (items.count() == 0 && count == 0) return 0;
    const size_t bytes = static_cast<size_t>(items.count() / count) * ElementSize(items.dtype());
    key.resize(sizeof(seed) + bytes);
    std::memcpy(key.data(), &seed, sizeof(seed));
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (bytes > 0)
        std::memcpy(key.data() + sizeof(seed), items.data<const char>() + static_cast<size_t>(i) * bytes,
                    bytes);
      const auto value = static_cast<double>(static_cast<int64_t>(common::Fingerprint(key)));
      sum += n.has_in(2) ? n.in(2).data<const float>()[i] * value : value;
    }
    return sum;
  }
};

constexpr const fbx_kernel* kTable[] = {&kernel_of<LshProjection>};

}  // namespace

constinit const KernelTable kLshProjectionKernels = kTable;

}  // namespace fusebox::cpu
