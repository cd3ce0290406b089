// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fusebox/tflite/c/c_api_opaque.h"

struct TfLiteOpaqueTensorBuilder {
  TfLiteType type = kTfLiteNoType;
  void* data = nullptr;
  TfLiteAllocationType allocation_type = kTfLiteMemNone;
  TfLiteQuantizationParams params{};
  TfLiteQuantization quantization{};
};
