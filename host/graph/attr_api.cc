// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <mutex>

#include "host/base/no_throw.h"
#include "host/graph/view.h"

namespace fusebox {
namespace {

// Caches C arrays of string lists and tensors. An entry is keyed by the address of its source and compared
// with it, since a freed address may be reused.
template <class Source, class View>
class Shown {
 public:
  template <class Fits, class Make>
  const View& Of(const Source& source, Fits&& fits, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<View>& view = views_[&source];
    if (view == nullptr || !fits(*view)) view = make();
    return *view;
  }

 private:
  std::mutex mutex_;
  std::map<const Source*, std::unique_ptr<View>> views_;
};

const std::vector<fbx_str>& ShowStrings(const std::vector<std::string>& list) {
  static auto& shown = *new Shown<std::vector<std::string>, std::vector<fbx_str>>;
  const auto fits = [&](const std::vector<fbx_str>& view) {
    if (view.size() != list.size()) return false;
    for (size_t i = 0; i < list.size(); ++i) {
      if (view[i].ptr != list[i].data() || view[i].len != list[i].size()) return false;
    }
    return true;
  };
  return shown.Of(list, fits, [&] {
    auto view = std::make_unique<std::vector<fbx_str>>();
    for (const std::string& text : list) view->push_back(AsAbi(text));
    return view;
  });
}

const fbx_tensor* ShowTensor(const Tensor& tensor) {
  struct Copy {
    Tensor tensor;  // keeps the data alive, so that its address is not reused
    TensorView view;
  };
  static auto& shown = *new Shown<Tensor, Copy>;
  const auto fits = [&](const Copy& copy) {
    return copy.tensor.data.SameAs(tensor.data) && copy.tensor.type == tensor.type;
  };
  const Copy& copy = shown.Of(tensor, fits, [&] {
    return std::unique_ptr<Copy>(
        new Copy{tensor, TensorView(tensor.type, tensor.data.data(), tensor.data.size(), FBX_TENSOR_CONST)});
  });
  return copy.view.abi();
}

const AttrValue* Find(const fbx_attrs* attrs, fbx_str key) { return FromAbi(attrs).Find(FromAbi(key)); }

template <class T, class F>
fbx_status Get(const fbx_attrs* attrs, fbx_str key, F&& use) {
  const AttrValue* value = Find(attrs, key);
  if (value == nullptr) return FBX_NOT_APPLICABLE;
  const T* held = std::get_if<T>(value);
  if (held == nullptr) return FBX_INVALID;
  use(*held);
  return FBX_OK;
}

fbx_status NoMemory(const fbx_attrs*) { return FBX_OUT_OF_MEMORY; }

size_t Count(const fbx_attrs* attrs) noexcept { return FromAbi(attrs).size(); }

fbx_str KeyAt(const fbx_attrs* attrs, size_t index) noexcept {
  if (index >= FromAbi(attrs).size()) return {nullptr, 0};
  return AsAbi(FromAbi(attrs).begin()[static_cast<std::ptrdiff_t>(index)].first);
}

fbx_attr_kind Kind(const fbx_attrs* attrs, fbx_str key) noexcept {
  // In the order of AttrValue's alternatives.
  static constexpr fbx_attr_kind kKinds[] = {FBX_ATTR_NONE, FBX_ATTR_BOOL,  FBX_ATTR_I64,   FBX_ATTR_F64,
                                             FBX_ATTR_STR,  FBX_ATTR_DTYPE, FBX_ATTR_SHAPE, FBX_ATTR_TENSOR,
                                             FBX_ATTR_I64S, FBX_ATTR_F64S,  FBX_ATTR_STRS,  FBX_ATTR_FUNC,
                                             FBX_ATTR_MAP};
  static_assert(std::size(kKinds) == std::variant_size_v<AttrValue>);
  const AttrValue* value = Find(attrs, key);
  return value == nullptr ? FBX_ATTR_NONE : kKinds[value->index()];
}

fbx_status GetBool(const fbx_attrs* attrs, fbx_str key, int32_t* out) noexcept {
  const fbx_status status = Get<bool>(attrs, key, [&](bool v) { *out = v ? 1 : 0; });
  if (status != FBX_INVALID) return status;
  const auto* integer = std::get_if<int64_t>(Find(attrs, key));
  if (integer == nullptr || (*integer != 0 && *integer != 1)) return FBX_INVALID;
  *out = static_cast<int32_t>(*integer);
  return FBX_OK;
}

fbx_status GetI64(const fbx_attrs* attrs, fbx_str key, int64_t* out) noexcept {
  return Get<int64_t>(attrs, key, [&](int64_t v) { *out = v; });
}

fbx_status GetF64(const fbx_attrs* attrs, fbx_str key, double* out) noexcept {
  const fbx_status status = Get<double>(attrs, key, [&](double v) { *out = v; });
  if (status != FBX_INVALID) return status;
  return Get<int64_t>(attrs, key, [&](int64_t v) { *out = static_cast<double>(v); });
}

fbx_status GetStr(const fbx_attrs* attrs, fbx_str key, fbx_str* out) noexcept {
  const fbx_status status = Get<std::string>(attrs, key, [&](const std::string& v) { *out = AsAbi(v); });
  if (status != FBX_INVALID) return status;
  return Get<FunctionRef>(attrs, key, [&](const FunctionRef& v) { *out = AsAbi(v.name); });
}

fbx_status GetDType(const fbx_attrs* attrs, fbx_str key, fbx_dtype* out) noexcept {
  return Get<DType>(attrs, key, [&](DType v) { *out = static_cast<fbx_dtype>(v); });
}

fbx_status GetI64s(const fbx_attrs* attrs, fbx_str key, const int64_t** out, size_t* count) noexcept {
  const fbx_status status = Get<std::vector<int64_t>>(attrs, key, [&](const auto& v) {
    *out = v.data();
    *count = v.size();
  });
  if (status != FBX_INVALID) return status;
  return Get<Shape>(attrs, key, [&](const Shape& v) {
    *out = v.dims().data();
    *count = v.ranked() ? v.dims().size() : SIZE_MAX;
  });
}

fbx_status GetF64s(const fbx_attrs* attrs, fbx_str key, const double** out, size_t* count) noexcept {
  return Get<std::vector<double>>(attrs, key, [&](const auto& v) {
    *out = v.data();
    *count = v.size();
  });
}

fbx_status GetStrs(const fbx_attrs* attrs, fbx_str key, const fbx_str** out, size_t* count) {
  return Get<std::vector<std::string>>(attrs, key, [&](const auto& v) {
    const std::vector<fbx_str>& view = ShowStrings(v);
    *out = view.data();
    *count = view.size();
  });
}

fbx_status GetTensor(const fbx_attrs* attrs, fbx_str key, const fbx_tensor** out) {
  return Get<Tensor>(attrs, key, [&](const Tensor& v) { *out = ShowTensor(v); });
}

fbx_status GetMap(const fbx_attrs* attrs, fbx_str key, const fbx_attrs** out) {
  static const Attrs& empty = *new Attrs;
  return Get<std::shared_ptr<const Attrs>>(attrs, key,
                                           [&](const auto& v) { *out = AsAbi(v == nullptr ? empty : *v); });
}

}  // namespace

const fbx_attr_api& AttrApi() {
  static constexpr fbx_attr_api kApi = {.head = FBX_HEAD(fbx_attr_api),
                                        .count = Count,
                                        .key_at = KeyAt,
                                        .kind = Kind,
                                        .get_bool = GetBool,
                                        .get_i64 = GetI64,
                                        .get_f64 = GetF64,
                                        .get_str = GetStr,
                                        .get_dtype = GetDType,
                                        .get_i64s = GetI64s,
                                        .get_f64s = GetF64s,
                                        .get_strs = kNoThrow<GetStrs, NoMemory>,
                                        .get_tensor = kNoThrow<GetTensor, NoMemory>,
                                        .get_map = kNoThrow<GetMap, NoMemory>};
  return kApi;
}

}  // namespace fusebox
