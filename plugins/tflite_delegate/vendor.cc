// SPDX-License-Identifier: Apache-2.0
#include "plugins/tflite_delegate/vendor.h"

#include <dlfcn.h>

namespace fusebox::tflite_delegate {
namespace {

constexpr std::string_view kCreate = "tflite_plugin_create_delegate";
constexpr std::string_view kDestroy = "tflite_plugin_destroy_delegate";

thread_local std::string* reported = nullptr;  // the vendor's callback has no argument of ours
void Report(const char* message) {
  if (reported != nullptr && message != nullptr) *reported = message;
}

}  // namespace

Vendor::Vendor(const Attrs& options) : library_(options.s("library")) {
  const std::string create(options.s("create", kCreate));
  takes_options_ = create == kCreate;
  if (const auto given = options.find_map("options")) {
    for (const std::string_view key : *given) options_.emplace_back(key, given->s(key));
  }
  if (!takes_options_ && !options_.empty())
    throw Error{FBX_INVALID, library_ + ": " + create + " accepts no options; remove \"options\""};
  handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr)
    throw Error{FBX_UNSUPPORTED, std::string("cannot load the external delegate: ") + dlerror()};
  create_ = Find(create);
  destroy_.function =
      reinterpret_cast<void (*)(TfLiteDelegate*)>(Find(std::string(options.s("destroy", kDestroy))));
}

void* Vendor::Find(const std::string& function) const {
  void* address = dlsym(handle_, function.c_str());
  if (address == nullptr)
    throw Error{FBX_UNSUPPORTED,
                library_ + ": does not export " + function +
                    ", so it is not an external delegate; \"create\" and \"destroy\" name other functions"};
  return address;
}

Vendor::DelegatePtr Vendor::Create() const {
  TfLiteDelegate* made = nullptr;
  std::string message;
  if (takes_options_) {
    std::vector<char*> keys;
    std::vector<char*> values;
    for (const auto& [key, value] : options_) {
      keys.push_back(const_cast<char*>(key.c_str()));
      values.push_back(const_cast<char*>(value.c_str()));
    }
    using Create = TfLiteDelegate* (*)(char**, char**, size_t, void (*)(const char*));
    reported = &message;
    made = reinterpret_cast<Create>(create_)(keys.data(), values.data(), keys.size(), Report);
    reported = nullptr;
  } else {
    made = reinterpret_cast<TfLiteDelegate* (*)(const void*)>(create_)(nullptr);
  }
  if (made == nullptr)
    throw Error{FBX_UNSUPPORTED, library_ + ": makes no delegate" + (message.empty() ? "" : ": " + message)};
  DelegatePtr out(made, destroy_);
  if (made->Prepare == nullptr)
    throw Error{FBX_UNSUPPORTED, library_ + ": makes a delegate over opaque types, which is not supported"};
  return out;
}

}  // namespace fusebox::tflite_delegate
