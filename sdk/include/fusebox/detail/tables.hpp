// SPDX-License-Identifier: Apache-2.0
// The tables of a plugin, made of its classes (plugin.hpp).
#pragma once

#include <algorithm>
#include <array>

#include "fusebox/abi/plugin.h"
#include "fusebox/delegate.hpp"
#include "fusebox/detail/cost_adapter.hpp"
#include "fusebox/detail/member.hpp"
#include "fusebox/kernel.hpp"
#include "fusebox/rule.hpp"

namespace fusebox::sdk {
inline namespace v1 {

namespace detail {

template <class T>
concept IsRule = requires { std::string_view(T::implements); };
template <class T>
concept IsKernel = NamesBuiltin<T> || NamesCustom<T>;

template <class T>
concept IsService = requires { std::string_view(T::extension); };

template <class T>
concept Loads = requires { T::load(); };
template <class T>
concept Unloads = requires { T::unload(); };

// The oldest host that a class supports: its `min_host_minor`, else 0.
template <class T>
constexpr uint32_t minor_of() {
  if constexpr (requires { T::min_host_minor; }) return T::min_host_minor;
  return 0;
}

template <class... Ts>
struct Tables {
  static_assert(
      ((IsRule<Ts> || IsKernel<Ts> || NamesDelegate<Ts> || IsService<Ts>) && ...),
      "each class is a rule (has `implements`), a kernel (has `builtin` or `custom`), a delegate (has "
      "`delegate`) or a service (has `extension`)");
  static_assert(((Loads<Ts> || !names_load<Ts>) && ...), "load is `static void load() noexcept`");
  static_assert(((Unloads<Ts> || !names_unload<Ts>) && ...), "unload is `static void unload() noexcept`");
  static constexpr size_t kRules = (size_t{0} + ... + (IsRule<Ts> ? 1 : 0));
  static constexpr size_t kDelegates = (size_t{0} + ... + (NamesDelegate<Ts> ? 1 : 0));
  static constexpr size_t kKernels = (size_t{0} + ... + (IsKernel<Ts> ? 1 : 0));

  static constexpr auto rules() {
    std::array<const fbx_rule*, kRules> out{};
    [[maybe_unused]] size_t i = 0;
    (
        [&] {
          if constexpr (IsRule<Ts>) out[i++] = &rule_of<Ts>;
        }(),
        ...);
    return out;
  }
  static constexpr auto kernels() {
    std::array<const fbx_kernel*, kKernels> out{};
    [[maybe_unused]] size_t i = 0;
    (
        [&] {
          if constexpr (IsKernel<Ts>) out[i++] = &kernel_of<Ts>;
        }(),
        ...);
    return out;
  }
  static constexpr auto delegates() {
    std::array<const fbx_delegate*, kDelegates> out{};
    [[maybe_unused]] size_t i = 0;
    (
        [&] {
          if constexpr (NamesDelegate<Ts>) out[i++] = &delegate_of<Ts>;
        }(),
        ...);
    return out;
  }
  static const void* find_service(void*, fbx_str id) noexcept {
    const void* table = nullptr;
    (
        [&] {
          if constexpr (IsService<Ts>) {
            if (to_string_view(id) == Ts::extension) table = Ts::table();
          }
        }(),
        ...);
    if constexpr (CostAdapter<Ts...>::used)
      if (table == nullptr && to_string_view(id) == FBX_EXT_COST) table = &CostAdapter<Ts...>::table;
    return table;
  }
  static void load() noexcept {
    (
        [] {
          if constexpr (Loads<Ts>) Ts::load();
        }(),
        ...);
  }
  static void call_unload() noexcept {
    (
        [] {
          if constexpr (Unloads<Ts>) Ts::unload();
        }(),
        ...);
  }
  static constexpr void (*unload)() noexcept = (Unloads<Ts> || ... || false) ? &call_unload : nullptr;
  static constexpr uint32_t min_host_minor = std::max({uint32_t{0}, minor_of<Ts>()...});
  static constexpr auto rule_table = rules();
  static constexpr auto kernel_table = kernels();
  static constexpr auto delegate_table = delegates();
  static constexpr bool serves = CostAdapter<Ts...>::used || (IsService<Ts> || ... || false);
  static constexpr const void* (*services)(void*, fbx_str) noexcept = serves ? &find_service : nullptr;
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

inline constexpr std::array<const fbx_delegate*, 0> no_delegates{};

template <class Rules, class Kernels, class Delegates = decltype(no_delegates)>
constexpr fbx_plugin make_plugin(std::string_view id, std::string_view version, const Rules& rules,
                                 const Kernels& kernels, const Delegates& delegates = no_delegates,
                                 const void* (*services)(void*, fbx_str) noexcept = nullptr) {
  fbx_plugin p =
      make_plugin(id, version, std::data(rules), std::size(rules), std::data(kernels), std::size(kernels));
  p.delegate_count = static_cast<uint32_t>(std::size(delegates));
  p.delegates = std::data(delegates);
  p.get_extension = services;
  return p;
}

constexpr fbx_entry make_entry(fbx_status (*load)(const fbx_host*, const fbx_plugin**) noexcept,
                               void (*unload)() noexcept = nullptr, uint32_t min_host_minor = 0) {
  constexpr std::string_view build = "c++ " __VERSION__;
  return {.magic = FBX_ENTRY_MAGIC,
          .major = FBX_ABI_MAJOR,
          .minor = FBX_ABI_MINOR,
          .size = sizeof(fbx_entry),
          .flags = FBX_BUILD_FLAGS,
          .min_host_minor = min_host_minor,
          .build = {build.data(), build.size()},
          .load = load,
          .unload = unload};
}

}  // namespace detail
}  // namespace v1
}  // namespace fusebox::sdk
