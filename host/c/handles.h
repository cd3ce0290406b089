// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of <fusebox/c.h>, and what all of its functions share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fusebox/c.h"
#include "host/c/border/call.h"
#include "host/model.h"
#include "host/plugin/registry.h"
#include "host/session.h"

struct fusebox_registry {
  std::shared_ptr<fusebox::Registry> registry;
};

struct fusebox_model {
  std::shared_ptr<const fusebox::Model> model;
  struct Entry {
    std::string key, why;
    bool can_run;
  };
  std::vector<Entry> entries;
};

struct fusebox_thread_pool {
  std::shared_ptr<fusebox::ThreadPool> pool;
};

struct fusebox_session {
  std::shared_ptr<const fusebox::Model> model;
  std::unique_ptr<fusebox::Session> session;
  // Types of inputs as declared or as set, and types of outputs as declared or as the last run left them.
  std::vector<fusebox::Type> inputs, outputs;
  bool ran = false;
  fusebox::Tensor value;  // the last that fusebox_session_value returned
  std::string value_name;
  std::vector<fusebox::NodeTime> times;  // of the last fusebox_session_times

  void Selected();  // call after a change of the signature
};

namespace fusebox::c {

// The options of a model, with its registry.
Result<ModelOptions> OptionsOf(const char* json, fusebox_registry* registry);
fusebox_model* HandleOf(std::shared_ptr<const Model> model);
Buffer Lent(const void* bytes, size_t size, void (*release)(void* user), void* user);

}  // namespace fusebox::c
