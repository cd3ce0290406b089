// SPDX-License-Identifier: Apache-2.0
// The plugin's one exported symbol.
//
//   FUSEBOX_PLUGIN("com.acme.rms_norm", "1.0.0", Rule, Kernel)         any number of rule and kernel classes
//   FUSEBOX_PLUGIN_TABLES("com.acme.big", "1.0.0", kRules, kKernels)   arrays of pointers, for many files
#pragma once

#include <array>
#include <tuple>

#include "fusebox/abi/plugin.h"
#include "fusebox/kernel.hpp"
#include "fusebox/rule.hpp"

namespace fusebox {
inline namespace v1 {
namespace detail {

template <class T>
concept IsRule = requires { std::string_view(T::implements); };
template <class T>
concept IsKernel = NamesBuiltin<T> || NamesCustom<T>;

template <class... Ts>
consteval size_t rule_count() {
  return (size_t{0} + ... + (IsRule<Ts> ? 1 : 0));
}

template <class... Ts>
struct Tables {
  static_assert(((IsRule<Ts> || IsKernel<Ts>) && ...),
                "each class is a rule (has `implements`) or a kernel (has `builtin` or `custom`)");
  static constexpr size_t kRules = rule_count<Ts...>(), kKernels = sizeof...(Ts) - kRules;

  static constexpr auto rules() {
    std::array<const fbx_rule*, kRules + 1> out{};
    size_t i = 0;
    (
        [&] {
          if constexpr (IsRule<Ts>) out[i++] = &rule_of<Ts>;
        }(),
        ...);
    return out;
  }
  static constexpr auto kernels() {
    std::array<const fbx_kernel*, kKernels + 1> out{};
    size_t i = 0;
    (
        [&] {
          if constexpr (IsKernel<Ts>) out[i++] = &kernel_of<Ts>;
        }(),
        ...);
    return out;
  }
  static constexpr std::array<const fbx_rule*, kRules + 1> rule_table = rules();
  static constexpr std::array<const fbx_kernel*, kKernels + 1> kernel_table = kernels();
};

constexpr fbx_plugin make_plugin(std::string_view id, std::string_view version, const fbx_rule* const* rules,
                                 size_t rule_count, const fbx_kernel* const* kernels, size_t kernel_count) {
  fbx_plugin p{};
  p.head = FBX_HEAD(fbx_plugin);
  p.id = {id.data(), id.size()};
  p.version = {version.data(), version.size()};
  p.rule_count = static_cast<uint32_t>(rule_count);
  p.rules = rules;
  p.kernel_count = static_cast<uint32_t>(kernel_count);
  p.kernels = kernels;
  return p;
}

constexpr fbx_entry make_entry(fbx_status (*load)(const fbx_host*, const fbx_plugin**) noexcept) {
  constexpr std::string_view build = "c++ " __VERSION__;
  return {FBX_ENTRY_MAGIC,
          FBX_ABI_MAJOR,
          FBX_ABI_MINOR,
          sizeof(fbx_entry),
          FBX_BUILD_FLAGS,
          0,
          {build.data(), build.size()},
          load,
          nullptr};
}

}  // namespace detail
}  // namespace v1
}  // namespace fusebox

#define FUSEBOX_PLUGIN_ENTRY_(plugin)                                                 \
  static fbx_status fusebox_load_(const fbx_host*, const fbx_plugin** out) noexcept { \
    *out = &(plugin);                                                                 \
    return FBX_OK;                                                                    \
  }                                                                                   \
  extern "C" FBX_EXPORT constinit const fbx_entry fusebox_entry_v1 =                  \
      fusebox::detail::make_entry(&fusebox_load_);

#define FUSEBOX_PLUGIN(id, version, ...)                                                                 \
  static constexpr fbx_plugin fusebox_plugin_ =                                                          \
      fusebox::detail::make_plugin(id, version, fusebox::detail::Tables<__VA_ARGS__>::rule_table.data(), \
                                   fusebox::detail::Tables<__VA_ARGS__>::kRules,                         \
                                   fusebox::detail::Tables<__VA_ARGS__>::kernel_table.data(),            \
                                   fusebox::detail::Tables<__VA_ARGS__>::kKernels);                      \
  FUSEBOX_PLUGIN_ENTRY_(fusebox_plugin_)

#define FUSEBOX_PLUGIN_TABLES(id, version, rules, kernels)                                      \
  static constexpr fbx_plugin fusebox_plugin_ = fusebox::detail::make_plugin(                   \
      id, version, std::data(rules), std::size(rules), std::data(kernels), std::size(kernels)); \
  FUSEBOX_PLUGIN_ENTRY_(fusebox_plugin_)
