// SPDX-License-Identifier: Apache-2.0
// FUSEBOX_PLUGIN defines the one exported symbol of a plugin.
//
//   FUSEBOX_PLUGIN("com.acme.rms_norm", "1.0.0", Rule, Kernel)         any number of rule, kernel, delegate and service classes
//   FUSEBOX_PLUGIN_TABLES("com.acme.big", "1.0.0", kRules, kKernels)   arrays of pointers, for many files; kDelegates may follow
//
// A service for other plugins is a class with the id and the table of an extension:
//   struct Shout {
//     static constexpr std::string_view extension = "acme.shout/1";
//     static const void* table() noexcept;     // a constant C struct of functions
//   };
// Kernels and delegates with a member `cost` make the plugin a provider of "fusebox.cost/1", which its
// manifest lists under provides.extensions. Each class may have
//   static void load() noexcept;               for lookups at load time; may run more than once
//   static void unload() noexcept;             once per load, when the host is done with the plugin
//   static constexpr uint32_t min_host_minor;  the oldest host that it supports (0): the plugin's is the largest
#pragma once

#include "fusebox/detail/tables.hpp"

#define FUSEBOX_PLUGIN_ENTRY_(plugin, load, ...)                                      \
  static fbx_status fusebox_load_(const fbx_host*, const fbx_plugin** out) noexcept { \
    load;                                                                             \
    *out = &(plugin);                                                                 \
    return FBX_OK;                                                                    \
  }                                                                                   \
  extern "C" FBX_EXPORT constinit const fbx_entry fusebox_entry_v1 =                  \
      fusebox::sdk::detail::make_entry(&fusebox_load_ __VA_OPT__(, ) __VA_ARGS__);

#define FUSEBOX_PLUGIN(id, version, ...)                                                   \
  using fusebox_tables_ = fusebox::sdk::detail::Tables<__VA_ARGS__>;                       \
  static constexpr fbx_plugin fusebox_plugin_ = fusebox::sdk::detail::make_plugin(         \
      id, version, fusebox_tables_::rule_table, fusebox_tables_::kernel_table,             \
      fusebox_tables_::delegate_table, fusebox_tables_::services);                         \
  FUSEBOX_PLUGIN_ENTRY_(fusebox_plugin_, fusebox_tables_::load(), fusebox_tables_::unload, \
                        fusebox_tables_::min_host_minor)

#define FUSEBOX_PLUGIN_TABLES(id, version, rules, ...)                    \
  static constexpr fbx_plugin fusebox_plugin_ =                           \
      fusebox::sdk::detail::make_plugin(id, version, rules, __VA_ARGS__); \
  FUSEBOX_PLUGIN_ENTRY_(fusebox_plugin_, static_cast<void>(0))
