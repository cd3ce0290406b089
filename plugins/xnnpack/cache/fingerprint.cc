// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/fingerprint.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <xnnpack.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::xnnpack {

namespace {

// A weights cache that keeps nothing and digests what is packed.
class Capture {
 public:
  Capture() {
    callbacks_.context = this;
    callbacks_.look_up = [](void*, const xnn_weights_cache_look_up_key*) { return SIZE_MAX; };
    callbacks_.reserve_space = [](void* self, size_t size) {
      return static_cast<Capture*>(self)->Reserve(size);
    };
    callbacks_.look_up_or_insert = [](void* self, const xnn_weights_cache_look_up_key* key, void* data,
                                      size_t size) {
      return static_cast<Capture*>(self)->Insert(key->seed, data, size);
    };
    callbacks_.is_finalized = [](void*) { return true; };
    callbacks_.offset_to_addr = [](void* self, size_t offset) -> void* {
      return static_cast<Capture*>(self)->packed_[offset].get();
    };
    callbacks_.delete_cache = [](void*) { return xnn_status_success; };
  }
  xnn_weights_cache_t get() { return &callbacks_; }
  uint64_t digest() const { return cache::Hash(std::as_bytes(std::span(text_))).low; }
  void Note(int value) { text_ += std::to_string(value) + ";"; }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  void* Reserve(size_t size) {
    packed_.emplace_back(std::aligned_alloc(128, (size + 127) / 128 * 128));
    return packed_.back().get();
  }
  size_t Insert(uint32_t seed, void* data, size_t size) {
    const cache::Digest d = cache::Hash({static_cast<const std::byte*>(data), size});
    text_ += std::to_string(seed) + "," + std::to_string(size) + "," + cache::Hex(d) + ";";
    return packed_.size() - 1;
  }
  xnn_weights_cache_provider callbacks_{};
  std::vector<std::unique_ptr<void, Free>> packed_;
  std::string text_;
};

// Small ops of a family, of each type that the delegate defines, of sizes that no tile divides.
class Canary {
 public:
  static constexpr size_t kIn = 38, kOut = 67, kSide = 3;

  Canary() {
    uint32_t state = 1;
    for (uint8_t& b : weights_) b = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < kOut; ++i) {
      bias_[i] = static_cast<int32_t>(i * 977) - 30000;
      scales_[i] = 0.01f + 0.001f * static_cast<float>(i);
      real_bias_[i] = 0.25f * static_cast<float>(i) - 3;
    }
    for (size_t i = 0; i < std::size(real_); ++i) real_[i] = 0.01f * static_cast<float>(weights_[i]) - 1;
  }

  uint64_t Pack(Family family) {
    Capture capture;
    for (const xnn_datatype filter :
         {xnn_datatype_fp32, xnn_datatype_qcint8, xnn_datatype_quint8, xnn_datatype_qcint4})
      for (const bool dynamic : {false, true}) capture.Note(PackOne(family, filter, dynamic, capture.get()));
    return capture.digest();
  }

 private:
  // The status is part of the fingerprint: what a build does not pack at all.
  int PackOne(Family family, xnn_datatype filter, bool dynamic, xnn_weights_cache_t cache) {
    const bool integers = filter == xnn_datatype_qcint8 || filter == xnn_datatype_qcint4;
    if (dynamic && !integers) return -1;
    if (filter == xnn_datatype_qcint4 && (!dynamic || family != Family::kFullyConnected)) return -1;
    xnn_subgraph_t graph = nullptr;
    if (const int status = xnn_create_subgraph(2, 0, &graph)) return status;
    int status = Define(graph, family, filter, dynamic);
    xnn_runtime_t runtime = nullptr;
    if (status == 0) status = xnn_create_runtime_v4(graph, cache, nullptr, nullptr, 0, &runtime);
    if (runtime != nullptr) xnn_delete_runtime(runtime);
    xnn_delete_subgraph(graph);
    return status;
  }

  int Define(xnn_subgraph_t graph, Family family, xnn_datatype filter, bool dynamic) {
    const bool flat = family == Family::kFullyConnected;
    const std::vector<size_t> in = flat ? std::vector<size_t>{1, kIn} : std::vector<size_t>{1, 7, 7, kIn};
    const std::vector<size_t> out = flat ? std::vector<size_t>{1, kOut} : std::vector<size_t>{1, 5, 5, kOut};
    const std::vector<size_t> dims =
        flat ? std::vector<size_t>{kOut, kIn} : std::vector<size_t>{kOut, kSide, kSide, kIn};
    const xnn_datatype type = filter == xnn_datatype_quint8            ? xnn_datatype_quint8
                              : filter == xnn_datatype_fp32 || dynamic ? xnn_datatype_fp32
                                                                       : xnn_datatype_qint8;
    uint32_t x = 0, y = 0, f = 0, b = 0;
    int status = Value(graph, type, in, 0, XNN_VALUE_FLAG_EXTERNAL_INPUT, &x);
    if (status == 0) status = Value(graph, type, out, 1, XNN_VALUE_FLAG_EXTERNAL_OUTPUT, &y);
    if (status == 0) status = Filter(graph, filter, dims, &f);
    if (status == 0) status = Bias(graph, filter, dynamic, &b);
    if (status == 0 && dynamic) status = Dynamic(graph, in, flat ? 1 : 3, &x);
    if (status != 0) return status;
    if (flat) return xnn_define_fully_connected(graph, -1, 1, x, f, b, y, 0);
    if (family == Family::kConvolution)
      return xnn_define_convolution_2d(graph, 0, 0, 0, 0, kSide, kSide, 1, 1, 1, 1, 1, kIn, kOut, -1, 1, x, f,
                                       b, y, 0);
    return xnn_define_deconvolution_2d(graph, 0, 0, 0, 0, 0, 0, kSide, kSide, 2, 2, 1, 1, 1, kIn, kOut, -1, 1,
                                       x, f, b, y, 0);
  }

  static int Value(xnn_subgraph_t graph, xnn_datatype type, const std::vector<size_t>& dims,
                   uint32_t external, uint32_t flags, uint32_t* id) {
    if (type == xnn_datatype_fp32)
      return xnn_define_tensor_value(graph, type, dims.size(), dims.data(), nullptr, external, flags, id);
    return xnn_define_quantized_tensor_value(graph, type, 5, 0.05f, dims.size(), dims.data(), nullptr,
                                             external, flags, id);
  }

  static int Dynamic(xnn_subgraph_t graph, const std::vector<size_t>& dims, size_t nonbatch, uint32_t* id) {
    const uint32_t from = *id;
    const int status = xnn_define_dynamically_quantized_tensor_value(
        graph, xnn_datatype_qdint8, dims.size(), nonbatch, dims.data(), XNN_INVALID_VALUE_ID, 0, id);
    return status != 0 ? status : xnn_define_unary(graph, xnn_unary_convert, nullptr, from, *id, 0);
  }

  int Filter(xnn_subgraph_t graph, xnn_datatype type, const std::vector<size_t>& dims, uint32_t* id) {
    if (type == xnn_datatype_fp32)
      return xnn_define_tensor_value(graph, type, dims.size(), dims.data(), real_, XNN_INVALID_VALUE_ID, 0,
                                     id);
    if (type == xnn_datatype_quint8)
      return xnn_define_quantized_tensor_value(graph, type, 120, 0.02f, dims.size(), dims.data(), weights_,
                                               XNN_INVALID_VALUE_ID, 0, id);
    return xnn_define_channelwise_quantized_tensor_value(graph, type, scales_, dims.size(), 0, dims.data(),
                                                         weights_, XNN_INVALID_VALUE_ID, 0, id);
  }

  int Bias(xnn_subgraph_t graph, xnn_datatype filter, bool dynamic, uint32_t* id) {
    const size_t count = kOut;
    if (filter == xnn_datatype_fp32 || dynamic)
      return xnn_define_tensor_value(graph, xnn_datatype_fp32, 1, &count, real_bias_, XNN_INVALID_VALUE_ID, 0,
                                     id);
    if (filter == xnn_datatype_quint8)
      return xnn_define_quantized_tensor_value(graph, xnn_datatype_qint32, 0, 0.02f, 1, &count, bias_,
                                               XNN_INVALID_VALUE_ID, 0, id);
    return xnn_define_channelwise_quantized_tensor_value(graph, xnn_datatype_qcint32, scales_, 1, 0, &count,
                                                         bias_, XNN_INVALID_VALUE_ID, 0, id);
  }

  uint8_t weights_[kOut * kSide * kSide * kIn];
  float real_[kOut * kSide * kSide * kIn];
  int32_t bias_[kOut];
  float scales_[kOut], real_bias_[kOut];
};

std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + segment.p_vaddr);
    const char* end = at + segment.p_memsz;
    while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const size_t name = (note.n_namesz + 3) & ~3u, text = (note.n_descsz + 3) & ~3u;
      at += sizeof note;
      if (static_cast<size_t>(end - at) < name + text) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(at, "GNU", 4) == 0)
        return std::string(at + name, note.n_descsz);
      at += name + text;
    }
  }
  return {};
}

// The object that holds a function of XNNPACK, whatever it is linked into.
int FindLibrary(dl_phdr_info* info, size_t, void* out) {
  const auto address = reinterpret_cast<uintptr_t>(&xnn_create_runtime_v4);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type != PT_LOAD || address < begin || address - begin >= segment.p_memsz) continue;
    *static_cast<std::string*>(out) = BuildIdOf(*info);
    return 1;
  }
  return 0;
}

std::string Cpu() {
  std::string cpu;
#if defined(__x86_64__)
#define FUSEBOX_ISA(name) cpu += __builtin_cpu_supports(name) ? name " " : ""
  FUSEBOX_ISA("ssse3");
  FUSEBOX_ISA("sse4.1");
  FUSEBOX_ISA("avx");
  FUSEBOX_ISA("fma");
  FUSEBOX_ISA("avx2");
  FUSEBOX_ISA("avx512f");
  FUSEBOX_ISA("avx512bw");
  FUSEBOX_ISA("avx512vl");
  FUSEBOX_ISA("avx512vbmi");
  FUSEBOX_ISA("avx512vnni");
#undef FUSEBOX_ISA
#endif
  return cpu;
}

}  // namespace

const std::string& LibraryBuild() {
  static const std::string build = [] {
    std::string id;
    dl_iterate_phdr(FindLibrary, &id);
    if (id.empty())
      id.assign(static_cast<const char*>(xnn_experimental_get_build_identifier_data()),
                xnn_experimental_get_build_identifier_size());
    return id;
  }();
  return build;
}

const Fingerprints& Fingerprints::Measured() {
  static const Fingerprints measured = [] {
    Fingerprints f;
    const auto canary = std::make_unique<Canary>();
    for (size_t i = 0; i < kFamilies; ++i) {
      const uint64_t packed = canary->Pack(static_cast<Family>(i));
      const std::string text = LibraryBuild() + std::to_string(packed);
      f.digests_[i] = cache::Hash(std::as_bytes(std::span(text))).low;
    }
    f.cpu_ = Cpu();
    return f;
  }();
  return measured;
}

}  // namespace fusebox::xnnpack
