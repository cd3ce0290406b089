// SPDX-License-Identifier: Apache-2.0
// Arguments of delegate callbacks, besides graphs: Claim, Call. Borrowed views, valid until the callback
// returns.
#pragma once

#include "fusebox/abi/delegate.h"
#include "fusebox/graph.hpp"

namespace fusebox::sdk {
inline namespace v1 {

enum class Accept {
  kAlone,
  kJoin,  // only in a partition that also holds kAlone nodes
};

class Claim {
 public:
  explicit Claim(const fbx_claim* claim) : claim_(claim) {}
  bool offered(uint32_t node) const {
    return !FBX_HAS(claim_, offered) || claim_->offered(claim_, node) != 0;
  }
  void accept(uint32_t node, Accept how = Accept::kAlone) const {
    (how == Accept::kJoin ? claim_->accept_join : claim_->accept)(claim_, node);
  }
  void reject(uint32_t node, std::string_view code, std::string_view why) const {
    claim_->reject(claim_, node, to_fbx_str(code), to_fbx_str(why));
  }

 private:
  const fbx_claim* claim_;
};

// The tensors of the current partition. All dims are known.
class Call {
 public:
  Call(const fbx_host* host, const fbx_call* call) : host_(host), call_(call) {}
  uint32_t in_count() const { return call_->input_count; }
  uint32_t out_count() const { return call_->output_count; }
  Tensor in(uint32_t i) const { return Tensor(call_->inputs[i]); }
  Tensor out(uint32_t i) const { return Tensor(call_->outputs[i]); }
  template <class T>
  T* scratch(uint32_t slot) const {
    return static_cast<T*>(call_->scratch[slot]);
  }
  bool cancelled() const noexcept { return is_cancelled(host_); }  // stop early, with Error{FBX_CANCELLED}
  const fbx_host* host() const { return host_; }
  const fbx_call* abi() const { return call_; }

 private:
  const fbx_host* host_;
  const fbx_call* call_;
};

}  // namespace v1
}  // namespace fusebox::sdk
