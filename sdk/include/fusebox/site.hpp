// SPDX-License-Identifier: Apache-2.0
// Site: the composite that a rule matches and rewrites. Borrowed, valid until the callback returns.
#pragma once

#include "fusebox/detail/checks.hpp"
#include "fusebox/graph.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// The composite to match or rewrite. match declines with require, arity, operand and attr.
class Site : public detail::Checks<Site> {
 public:
  Site(const fbx_host* host, const fbx_composite* c) : host_(host), c_(c) {}
  std::string_view name() const { return to_string_view(c_->name); }
  int version() const { return c_->version; }
  Attrs attrs() const { return {host_, c_->attrs}; }
  Attrs options() const { return {host_, host_->options}; }
  uint32_t in_count() const { return c_->operand_count; }
  uint32_t out_count() const { return c_->result_count; }
  Tensor in(uint32_t i) const { return Tensor(c_->operands[i]); }
  Tensor out(uint32_t i) const { return Tensor(c_->results[i]); }
  // Returns the function that the composite computes, or nothing if there is no body or only a placeholder.
  std::optional<Graph> body() const {
    return c_->body ? std::optional(Graph(host_, c_->body)) : std::nullopt;
  }
  const fbx_host* host() const { return host_; }
  const fbx_composite* abi() const { return c_; }

 private:
  const fbx_host* host_;
  const fbx_composite* c_;
};

}  // namespace v1
}  // namespace fusebox::sdk
