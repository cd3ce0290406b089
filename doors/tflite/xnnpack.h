// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#define FUSEBOX_TFLITE_BUILDS_LIBRARY
#include "fusebox/tflite/delegates/xnnpack/xnnpack_delegate.h"

namespace fusebox::tflite {

// The delegate of TfLiteXNNPackDelegateCreate.
struct XnnpackDelegate {
  TfLiteDelegate abi{};
  TfLiteXNNPackDelegateOptions options{};
  std::string cache_path;
};

// Null: another delegate.
const XnnpackDelegate* AsXnnpack(const TfLiteDelegate* delegate);

}  // namespace fusebox::tflite
