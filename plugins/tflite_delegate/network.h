// SPDX-License-Identifier: Apache-2.0
// A graph as TensorFlow Lite's delegates see one: the context, the nodes, and the kernels that replace nodes.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "plugins/tflite_delegate/tensors.h"
#include "plugins/tflite_delegate/vendor.h"

namespace fusebox::tflite_delegate {

// A function of the context that is not offered fails with an error that names it. One thread at a time.
class Network {
 public:
  enum class Purpose {
    kClaim,  // nodes that the delegate replaces are only recorded
    kRun,
  };
  // The nodes with these numbers. Throws Reject if one cannot be expressed.
  Network(const Vendor& vendor, const Graph& graph, const std::vector<uint32_t>& nodes, Purpose purpose);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Shows the graph to the delegate, which replaces nodes. Throws Error with the vendor's message.
  void ApplyDelegate();
  // Numbers of the nodes that the delegate has replaced.
  const std::set<uint32_t>& replaced() const { return replaced_; }
  const std::string& last_error() const { return error_; }

  // Prepares the kernels, and allocates the tensors between and inside them. Throws if a size that the graph
  // states changes, or depends on values.
  void Prepare();
  void SetData(fbx_value id, void* data) { tensors_[id].data.raw = static_cast<char*>(data); }
  void Invoke();

 private:
  friend struct Callbacks;
  struct Op {
    ~Op();
    TfLiteNode node = {};
    TfLiteRegistration registration = {};
    std::string name = {};  // of a custom op
    std::vector<std::byte> options = {};
    uint32_t number = 0;  // in the graph
    bool is_kernel = false;
  };
  // Consecutive nodes of which the delegate replaces all or none.
  struct Subset {
    bool replaced = false;
    std::vector<int> nodes = {};
    std::vector<int> inputs = {};   // tensors that the nodes read and do not make
    std::vector<int> outputs = {};  // tensors that others read
  };
  // TfLiteDelegateParams that own their arrays.
  struct Params {
    Params(const Subset& subset, TfLiteDelegate* delegate);
    ~Params();
    Params(const Params&) = delete;
    TfLiteDelegateParams raw;
  };

  void AddOp(const GraphNode& node, uint32_t number);
  void FillContext();
  TfLiteStatus Replace(TfLiteRegistration kernel, const TfLiteIntArray* nodes, TfLiteDelegate* delegate);
  TfLiteStatus Preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** out, int* count);
  void AddKernel(const TfLiteRegistration& kernel, const Subset& subset, TfLiteDelegate* delegate);
  std::vector<Subset> Partition(const TfLiteIntArray* nodes) const;
  void FindBorder(Subset& subset) const;
  void Allocate();
  void FetchResults(const Op& op);
  [[noreturn]] void Fail(const std::string& what) const;

  const Vendor& vendor_;
  const Purpose purpose_;
  TfLiteContext context_ = {};
  std::vector<TfLiteTensor> tensors_;  // by value number of the graph, then what the delegate adds
  std::vector<std::unique_ptr<Op>> ops_;
  std::vector<int> plan_;
  std::vector<int> inputs_, outputs_;
  TfLiteIntArray* shown_plan_ = nullptr;
  std::deque<Params> params_, previews_;
  std::vector<TfLiteDelegateParams> shown_previews_;
  std::set<uint32_t> replaced_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::string error_;  // what the delegate reported last
  Vendor::DelegatePtr delegate_;
};

}  // namespace fusebox::tflite_delegate
