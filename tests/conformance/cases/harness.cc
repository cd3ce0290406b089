// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/conformance/cases/stub_host.h"

namespace fusebox::conformance {
namespace {

using Place = Guarded::Place;

Cases& Registered() {
  static Cases cases;
  return cases;
}

constexpr uint8_t kPoison = 0xA5;

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "[";
  for (const int64_t d : dims) text += (text.size() > 1 ? "," : "") + std::to_string(d);
  return text + "]";
}

size_t ElementBytes(const Data& d) {
  switch (d.dtype) {
    case FBX_I8:
    case FBX_U8:
    case FBX_BOOL: return 1;
    case FBX_F16:
    case FBX_BF16:
    case FBX_I16:
    case FBX_U16: return 2;
    case FBX_F64:
    case FBX_I64:
    case FBX_U64:
    case FBX_COMPLEX64: return 8;
    case FBX_COMPLEX128: return 16;
    default: return 4;
  }
}

template <class T>
void CompareAs(const Data& want, const uint8_t* got, const Case& c) {
  for (size_t i = 0; i < want.bytes.size() / sizeof(T); ++i) {
    T a, b;
    std::memcpy(&a, want.bytes.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&b, got + i * sizeof(T), sizeof(T));
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y || std::abs(x - y) <= c.atol + c.rtol * std::abs(x)) continue;
    ADD_FAILURE() << "element " << i << ": expected " << x << ", got " << y;
    return;
  }
}

void Compare(const Data& want, StubTensor& got, const Case& c, size_t index) {
  SCOPED_TRACE("result " + std::to_string(index));
  ASSERT_EQ(ShapeText(want.dims), ShapeText(got.dims()));
  ASSERT_EQ(want.bytes.size(), got.abi()->bytes);
  ExpectValues(want, got.abi()->data, c);
}

// Whatever infer knows must hold for the expected result.
void ExpectCompatible(const StubNode::Inferred& said, const Data& want) {
  ASSERT_TRUE(said.set) << "infer said nothing of a result";
  EXPECT_EQ(said.dtype, want.dtype);
  if (said.rank < 0) return;
  ASSERT_EQ(static_cast<size_t>(said.rank), want.dims.size())
      << "inferred " << ShapeText(said.dims) << ", expected " << ShapeText(want.dims);
  for (size_t i = 0; i < want.dims.size(); ++i)
    EXPECT_TRUE(said.dims[i] < 0 || said.dims[i] == want.dims[i])
        << "inferred " << ShapeText(said.dims) << ", expected " << ShapeText(want.dims);
}

void Infer(const fbx_kernel& k, const Case& c, StubNode& n) {
  n.ForgetInferred();
  ASSERT_EQ(k.infer(n.host(), k.user, n.node(), n.infer()), FBX_OK) << n.messages;
  for (size_t i = 0; i < c.results.size(); ++i) ExpectCompatible(n.inferred[i], c.results[i]);
}

enum class Known { kNothing, kRanks };

void InferVague(const fbx_kernel& k, const Case& c, Known known) {
  SCOPED_TRACE(known == Known::kNothing ? "infer with unknown ranks" : "infer with unknown dims");
  StubNode n(c, false);
  for (size_t i = 0; i < c.operands.size(); ++i) {
    if (c.operands[i].dtype == FBX_DTYPE_NONE) continue;
    if (known == Known::kNothing) n.operand(i).SetUnranked();
    else n.operand(i).SetDims(std::vector<int64_t>(c.operands[i].dims.size(), -1));
  }
  Infer(k, c, n);
}

// Values are given only as infer asks for them; in the end it knows as much as with all of them.
void InferOnDemand(const fbx_kernel& k, const Case& c, const StubNode& full) {
  SCOPED_TRACE("infer with values on demand");
  StubNode n(c, false);
  for (bool more = true; more;) {
    Infer(k, c, n);
    more = false;
    for (size_t i = 0; i < c.operands.size(); ++i) {
      if (!n.wanted[i] || n.operand(i).abi()->data) continue;
      n.Give(i, Place::kAligned);
      more = true;
    }
  }
  for (size_t i = 0; i < c.results.size(); ++i)
    EXPECT_EQ(ShapeText(n.inferred[i].dims), ShapeText(full.inferred[i].dims))
        << "a value that decides the shape was not asked for";
}

struct Setting {
  bool threads = false;
  Place place = Place::kAligned;  // of the operands
  bool constants = false;         // all operands but the first are constants, which a kernel may pack in init
  int inplace = -1;               // the operand that result 0 is laid on
};

// Everything up to invoke; the status and where it came from.
class Run {
 public:
  Run(const fbx_kernel& k, const Case& c, const Setting& s) : k_(k), c_(c), s_(s), n_(c, s.threads) {
    for (size_t i = 0; i < c.operands.size(); ++i) {
      n_.Give(i, s.place);
      if (s.constants && i > 0 && c.operands[i].dtype != FBX_DTYPE_NONE)
        n_.operand(i).abi()->flags |= FBX_TENSOR_CONST;
    }
  }
  ~Run() {
    if (k_.free_state && state_) k_.free_state(k_.user, state_);
    if (k_.free && instance_) k_.free(k_.user, instance_);
  }
  StubNode& node() { return n_; }

  fbx_status Prepare() {
    fbx_status status = k_.infer(n_.host(), k_.user, n_.node(), n_.infer());
    if (status != FBX_OK) return status;
    for (size_t i = 0; i < c_.results.size(); ++i) {
      const auto& said = n_.inferred[i];
      if (!said.set) return FBX_INTERNAL;
      if (!said.is_static()) continue;
      if (said.dims != c_.results[i].dims && c_.error.empty()) return FBX_INTERNAL;
      n_.result(i).SetDims(said.dims);
      size_t bytes = ElementBytes(c_.results[i]);
      for (const int64_t d : said.dims) bytes *= static_cast<size_t>(d);
      if (bytes > (size_t{1} << 28)) return FBX_OUT_OF_MEMORY;
      n_.result(i).Allocate(bytes, Place::kAligned, kPoison);
    }
    if (s_.inplace >= 0) n_.result(0).Share(n_.operand(static_cast<size_t>(s_.inplace)));
    if (k_.init && (status = k_.init(n_.host(), k_.user, n_.node(), &instance_)) != FBX_OK) return status;
    if (k_.prepare) status = k_.prepare(n_.host(), k_.user, instance_, n_.node(), n_.plan(), &state_);
    return status;
  }

  fbx_status Invoke() {
    // NaN and -1 at first, then large positive numbers.
    n_.PoisonScratch(invoked_++ == 0 ? 0xFF : 0x5A);
    for (size_t i = 0; i < c_.results.size(); ++i) {
      if (!n_.inferred[i].is_static()) n_.result(i).Drop();
      else if (s_.inplace < 0 && n_.result(i).memory()) n_.result(i).memory()->Fill(kPoison);
    }
    return k_.invoke(n_.host(), k_.user, instance_, state_, n_.node());
  }

  void ExpectIntact() {
    for (size_t i = 0; i < c_.operands.size(); ++i) {
      if (!n_.operand(i).memory()) continue;
      EXPECT_TRUE(n_.operand(i).memory()->intact()) << "wrote outside of operand " << i;
      if (static_cast<int>(i) == s_.inplace || c_.operands[i].bytes.empty()) continue;
      EXPECT_EQ(0, std::memcmp(n_.operand(i).memory()->data(), c_.operands[i].bytes.data(),
                               c_.operands[i].bytes.size()))
          << "changed operand " << i;
    }
    for (size_t i = 0; i < c_.results.size(); ++i)
      EXPECT_TRUE(!n_.result(i).memory() || n_.result(i).memory()->intact())
          << "wrote outside of result " << i;
    for (const auto& slot : n_.scratch) EXPECT_TRUE(slot->intact()) << "wrote outside of scratch";
  }

 private:
  const fbx_kernel& k_;
  const Case& c_;
  Setting s_;
  StubNode n_;
  void* instance_ = nullptr;
  void* state_ = nullptr;
  int invoked_ = 0;
};

void RunIn(const fbx_kernel& k, const Case& c, const Setting& s) {
  SCOPED_TRACE(std::string(s.threads ? "threads" : "no threads") +
               (s.place == Place::kAtEnd ? ", operands at the end of memory" : "") +
               (s.constants ? ", constants" : "") +
               (s.inplace >= 0 ? ", result on operand " + std::to_string(s.inplace) : ""));
  Run run(k, c, s);
  ASSERT_EQ(run.Prepare(), FBX_OK) << run.node().messages;
  for (int i = 0; i < (s.inplace < 0 ? 2 : 1); ++i) {
    ASSERT_EQ(run.Invoke(), FBX_OK) << run.node().messages;
    for (size_t r = 0; r < c.results.size(); ++r) Compare(c.results[r], run.node().result(r), c, r);
    run.ExpectIntact();
  }
}

void ExpectError(const fbx_kernel& k, const Case& c) {
  Case with_result = c;
  if (with_result.results.empty()) with_result.results = {Data{FBX_F32, {}, {0, 0, 0, 0}}};
  Run run(k, with_result, {});
  fbx_status status = k.supports ? k.supports(run.node().host(), k.user, run.node().node()) : FBX_OK;
  EXPECT_NE(status, FBX_NOT_APPLICABLE) << "declined instead of failing: " << run.node().messages;
  if (status == FBX_OK) status = run.Prepare();
  if (status == FBX_OK) status = run.Invoke();
  EXPECT_NE(status, FBX_OK) << "should have failed with: " << c.error;
  EXPECT_NE(status, FBX_INTERNAL) << run.node().messages;
  EXPECT_NE(run.node().messages.find(c.error), std::string::npos)
      << "expected \"" << c.error << "\" in: " << run.node().messages;
  run.ExpectIntact();
}

void ExpectRefused(const fbx_kernel& k, const Case& c) {
  StubNode n(c, false);
  ASSERT_TRUE(k.supports) << "has no supports, and should decline: " << c.refused;
  EXPECT_EQ(k.supports(n.host(), k.user, n.node()), FBX_NOT_APPLICABLE);
  EXPECT_NE(n.messages.find(c.refused), std::string::npos) << n.messages;
}

}  // namespace

void ExpectValues(const Data& want, const void* got, const Case& c) {
  if (want.bytes.empty()) return;
  const auto* bytes = static_cast<const uint8_t*>(got);
  switch (want.dtype) {
    case FBX_F32: return CompareAs<float>(want, bytes, c);
    case FBX_F64: return CompareAs<double>(want, bytes, c);
    case FBX_COMPLEX64: return CompareAs<float>(want, bytes, c);
    case FBX_COMPLEX128: return CompareAs<double>(want, bytes, c);
    case FBX_I8: return CompareAs<int8_t>(want, bytes, c);
    case FBX_I16: return CompareAs<int16_t>(want, bytes, c);
    case FBX_I32: return CompareAs<int32_t>(want, bytes, c);
    case FBX_U8:
    case FBX_BOOL: return CompareAs<uint8_t>(want, bytes, c);
    case FBX_I64:
      ASSERT_EQ(As<int64_t>(want),
                std::vector<int64_t>(reinterpret_cast<const int64_t*>(bytes),
                                     reinterpret_cast<const int64_t*>(bytes) + want.count()));
      return;
    default: EXPECT_EQ(0, std::memcmp(want.bytes.data(), bytes, want.bytes.size())) << "bytes differ";
  }
}

Suite::Suite(std::string, std::function<void(Cases&)> add) { add(Registered()); }
const Cases& AllCases() { return Registered(); }

const fbx_kernel* FindKernel(std::span<const fbx_kernel* const> kernels, std::string_view op) {
  for (const fbx_kernel* k : kernels)
    if (k->kind == FBX_OP_BUILTIN && to_string_view(k->op) == op) return k;
  return nullptr;
}

std::string WhySkipped(const Implementation& implementation, const Case& c) {
  for (const auto& skip : implementation.skips)
    if (skip.op == c.op && (skip.name.empty() || skip.name == c.name)) return skip.why;
  return {};
}

void RunCase(const fbx_kernel& k, const Case& c) {
  SCOPED_TRACE(c.op + ": " + c.name);
  if (!c.refused.empty()) return ExpectRefused(k, c);
  if (!c.error.empty()) return ExpectError(k, c);
  StubNode full(c, false);
  for (size_t i = 0; i < c.operands.size(); ++i) full.Give(i, Place::kAligned);
  const fbx_status supported = k.supports ? k.supports(full.host(), k.user, full.node()) : FBX_OK;
  ASSERT_EQ(supported, FBX_OK) << full.messages;
  Infer(k, c, full);
  InferVague(k, c, Known::kNothing);
  InferVague(k, c, Known::kRanks);
  InferOnDemand(k, c, full);
  RunIn(k, c, {});
  RunIn(k, c, {.threads = true, .place = Place::kAtEnd});
  RunIn(k, c, {.threads = true, .constants = true});
  if (!(k.flags & FBX_KERNEL_INPLACE)) return;
  for (size_t i = 0; i < c.operands.size(); ++i)
    if (c.operands[i].dtype == c.results[0].dtype && c.operands[i].bytes.size() == c.results[0].bytes.size())
      RunIn(k, c, {.inplace = static_cast<int>(i)});
}

bool HasF32(const Case& c) {
  for (const auto* list : {&c.operands, &c.results})
    for (const Data& d : *list)
      if (d.dtype == FBX_F32) return true;
  return false;
}

Case Retyped(const Case& c) {
  Case twin = c;
  twin.name += " (f64)";
  for (auto* list : {&twin.operands, &twin.results})
    for (Data& d : *list) {
      if (d.dtype != FBX_F32) continue;
      const std::vector<float> values = As<float>(d);
      d = values.empty() ? F64(d.dims, {0}) : F64(d.dims, {values.begin(), values.end()});
    }
  return twin;
}

}  // namespace fusebox::conformance
