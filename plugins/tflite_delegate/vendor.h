// SPDX-License-Identifier: Apache-2.0
// The library of a vendor's external delegate, and the delegates that it makes.
#pragma once

#include <fusebox/base.hpp>

#include <memory>
#include <string>
#include <vector>

#include "fusebox/tflite/c/common.h"

namespace fusebox::tflite_delegate {

using namespace sdk;

class Vendor {
 public:
  // Throws Error if the library cannot be loaded, or lacks one of the two functions.
  explicit Vendor(const Attrs& options);
  const std::string& library() const { return library_; }

  // Frees a delegate with the function of its library.
  struct Destroy {
    void (*function)(TfLiteDelegate*) = nullptr;
    void operator()(TfLiteDelegate* delegate) const { function(delegate); }
  };
  using DelegatePtr = std::unique_ptr<TfLiteDelegate, Destroy>;
  // A delegate for one graph. Throws Error with the vendor's message if there is none.
  DelegatePtr Create() const;

 private:
  void* Find(const std::string& function) const;

  const std::string library_;
  std::vector<std::pair<std::string, std::string>> options_;
  void* handle_ = nullptr;  // stays open: vendors' threads and handlers may outlive the delegate
  void* create_ = nullptr;
  bool takes_options_ = true;
  Destroy destroy_;
};

}  // namespace fusebox::tflite_delegate
