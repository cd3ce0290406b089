// SPDX-License-Identifier: Apache-2.0
// TfLiteTensor from the tensors of <fusebox/c.h> and of the plugin ABI, and memory for it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "fusebox/abi/tensor.h"
#include "fusebox/c.h"
#include "fusebox/tflite/c/common.h"

namespace fusebox::tflite {

// kTfLiteNoType, FBX_DTYPE_NONE: the other side has no such type.
TfLiteType TypeOf(fbx_dtype dtype);
fbx_dtype DTypeOf(TfLiteType type);
// 0: no fixed size.
size_t BitsOf(TfLiteType type);
// Bytes of a dense tensor with these dims. 0: no fixed size, or more than can be stored.
size_t BytesOf(TfLiteType type, const TfLiteIntArray& dims);

// Sets dims; -1 becomes 1, as in files of TensorFlow Lite. Unknown rank: no dims.
void SetDims(TfLiteTensor& tensor, std::span<const int64_t> dims);
// Sets dims_signature if a dim is -1.
void SetSignature(TfLiteTensor& tensor, std::span<const int64_t> dims);
void SetQuantization(TfLiteTensor& tensor, std::span<const float> scales, const int64_t* zero_points,
                     int32_t axis);
// Name, type, dims and quantization of a tensor of a file or session. Borrows the name.
void Declare(TfLiteTensor& tensor, const fusebox_tensor& from);

// Memory that kernels can use without a copy: aligned to 64 bytes, zeroed, readable beyond its end.
class AlignedMemory {
 public:
  static constexpr size_t kReadable = 16;  // bytes after it
  // Keeps memory that is large enough. Throws std::bad_alloc.
  void Reserve(size_t bytes);
  char* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> data_;
  size_t capacity_ = 0;
};

// A tensor that frees what it holds. Not movable: applications keep its address.
class OwnedTensor {
 public:
  OwnedTensor() : tensor_{} { tensor_.buffer_handle = kTfLiteNullBufferHandle; }
  OwnedTensor(const OwnedTensor&) = delete;
  OwnedTensor& operator=(const OwnedTensor&) = delete;
  ~OwnedTensor() { TfLiteTensorFree(&tensor_); }
  TfLiteTensor& get() { return tensor_; }
  const TfLiteTensor& get() const { return tensor_; }

 private:
  TfLiteTensor tensor_;
};

}  // namespace fusebox::tflite
