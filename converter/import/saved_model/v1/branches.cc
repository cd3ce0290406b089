// SPDX-License-Identifier: Apache-2.0
// Conditionals: a Switch sends a value to one side of a condition, a Merge joins the two sides. Each node
// runs on some sides of some conditions (its state). Merges outside of all branches become results of an If,
// whose branches are what their inputs need on either side; conditionals inside are rebuilt there.
#include <algorithm>
#include <array>

#include "converter/import/saved_model/v1/graph.h"

namespace fusebox::saved_model::v1 {
namespace {

constexpr int kNever = -1;  // no state: a node that needs both sides of a condition
constexpr size_t kMostSides = 64;
constexpr size_t kMostIfs = 4096;

struct Side {
  Port condition;
  bool taken;
  auto operator<=>(const Side&) const = default;
};
using Sides = std::vector<Side>;  // in order

// Which input a Merge forwards is the side of one condition.
struct Joined {
  Port condition;
  std::array<std::vector<Port>, 2> inputs;  // by side
  Sides around;                             // of the Merge itself
};

class States {
 public:
  explicit States(const Graph& g) : g_(g), of_(g.nodes.size(), 0) { Number({}); }

  Status Find() {
    FUSEBOX_ASSIGN(order_, Order(g_));
    for (const int n : order_) {
      if (g_[n].kind == Kind::kMerge) {
        FUSEBOX_TRY(FindMerge(n).At([&] { return "node " + g_.NameOf(n) + " (Merge)"; }));
        continue;
      }
      int& state = of_[static_cast<size_t>(n)];
      for (const Port& input : g_[n].inputs) {
        FUSEBOX_ASSIGN(const int side, OfPort(input));
        FUSEBOX_ASSIGN(state, Both(state, side));
      }
      for (const int control : g_[n].controls) {
        FUSEBOX_ASSIGN(state, Both(state, of(control)));
      }
    }
    return {};
  }

  const std::vector<int>& order() const { return order_; }
  int of(int node) const { return of_[static_cast<size_t>(node)]; }
  bool IsOutside(int node) const { return of(node) == 0; }
  bool Has(int node) const { return static_cast<size_t>(node) < of_.size(); }  // else added later
  // Returns the branches that a Merge outside of all branches joins, or null for another node.
  const Joined* Find(int merge) const {
    const auto it = joined_.find(merge);
    return it == joined_.end() || !it->second.around.empty() ? nullptr : &it->second;
  }

  Result<int> OfPort(Port port) {
    const int state = of(port.node);
    if (g_[port.node].kind == Kind::kSwitch && port.output > 1)
      return Invalid("refers to " + g_.Text(port) + ": no such output");
    if (g_[port.node].kind != Kind::kSwitch || g_[port.node].inputs.size() != 2 || state == kNever)
      return state;
    return Both(state, Number({{Origin(g_, g_[port.node].inputs[1]), port.output == 1}}));
  }

 private:
  int Number(const Sides& sides) {
    const auto [it, fresh] = numbers_.emplace(sides, static_cast<int>(all_.size()));
    if (fresh) all_.push_back(sides);
    return it->second;
  }

  Result<int> Both(int a, int b) {
    if (a == kNever || b == kNever) return kNever;
    if (a == b || b == 0) return a;
    if (a == 0) return b;
    Sides all;
    std::ranges::set_union(all_[static_cast<size_t>(a)], all_[static_cast<size_t>(b)],
                           std::back_inserter(all));
    for (size_t i = 1; i < all.size(); ++i)
      if (all[i].condition == all[i - 1].condition) return kNever;
    if (all.size() > kMostSides)
      return Unsupported("more than " + std::to_string(kMostSides) + " branches in each other");
    return Number(all);
  }

  struct Input {
    Port port;
    Sides sides;
  };

  Status FindMerge(int n) {
    std::vector<Input> inputs;
    for (const Port& port : g_[n].inputs) {
      FUSEBOX_ASSIGN(const int state, OfPort(port));
      if (state != kNever) inputs.push_back({port, all_[static_cast<size_t>(state)]});
    }
    if (inputs.size() < 2) {  // never joins anything
      of_[static_cast<size_t>(n)] = kNever;
      return {};
    }
    tries_ = 0;
    FUSEBOX_ASSIGN(const Joined joined, Join(inputs, 0));
    of_[static_cast<size_t>(n)] = Number(joined.around);
    joined_[n] = joined;
    return {};
  }

  static std::vector<Input> OnSide(const std::vector<Input>& inputs, Side side) {
    std::vector<Input> out;
    for (Input input : inputs)
      if (std::erase(input.sides, side) > 0) out.push_back(std::move(input));
    return out;
  }

  Result<Sides> Common(const std::vector<Input>& inputs, int depth) const {
    if (inputs.size() == 1) return inputs[0].sides;
    FUSEBOX_ASSIGN(Joined joined, Join(inputs, depth + 1));
    return std::move(joined.around);
  }

  // The condition whose sides the inputs are on, and nothing else.
  Result<Joined> Join(const std::vector<Input>& inputs, int depth) const {
    constexpr int kMostDepth = 16;
    constexpr int kMostTries = 10000;
    for (const Side& side : inputs[0].sides) {
      if (depth >= kMostDepth || ++tries_ > kMostTries) break;
      const std::vector<Input> here = OnSide(inputs, side);
      const std::vector<Input> there = OnSide(inputs, {side.condition, !side.taken});
      if (there.empty() || here.size() + there.size() != inputs.size()) continue;
      const auto around = Common(here, depth);
      const auto other = Common(there, depth);
      if (!around || !other || *around != *other) continue;
      Joined out{side.condition, {}, *around};
      for (const Input& input : here) out.inputs[side.taken ? 1 : 0].push_back(input.port);
      for (const Input& input : there) out.inputs[side.taken ? 0 : 1].push_back(input.port);
      return out;
    }
    return Unsupported(
        "its inputs are not the two sides of one condition, so that which of them it forwards depends on the "
        "order in which nodes run");
  }

  const Graph& g_;
  std::vector<int> of_, order_;
  std::map<Sides, int> numbers_;
  std::vector<Sides> all_;
  std::map<int, Joined> joined_;
  mutable int tries_ = 0;  // of the Merge at hand
};

// Merges of one condition that can become one If: none of them needs another one's result.
class Groups {
 public:
  Groups(const Graph& g, const States& states) : g_(g), states_(states) {}

  Status Find() {
    const std::vector<bool> needed = Needed();
    constexpr size_t kMostKept = size_t{1} << 22;
    size_t kept = 0;
    std::vector<std::set<int>> before(g_.nodes.size());
    for (const int n : states_.order()) {
      std::set<int>& here = before[static_cast<size_t>(n)];
      const auto join = [&](int producer) {
        const auto& there = before[static_cast<size_t>(producer)];
        here.insert(there.begin(), there.end());
      };
      for (const Port& input : g_[n].inputs) join(input.node);
      for (const int control : g_[n].controls) join(control);
      kept += here.size();
      const Joined* joined = needed[static_cast<size_t>(n)] ? states_.Find(n) : nullptr;
      if (!joined) continue;
      const int group = GroupOf(joined->condition, here);
      if (groups.size() > kMostIfs || kept > kMostKept)
        return Unsupported("more than " + std::to_string(kMostIfs) + " conditionals");
      groups[static_cast<size_t>(group)].push_back(n);
      before_[static_cast<size_t>(group)].insert(here.begin(), here.end());
      here = {group};
    }
    return {};
  }

  std::vector<std::vector<int>> groups;

 private:
  std::vector<bool> Needed() const {
    std::vector<bool> seen(g_.nodes.size(), false);
    std::vector<int> pending = g_.effects;
    for (const Port& result : g_.results) pending.push_back(result.node);
    while (!pending.empty()) {
      const int n = pending.back();
      pending.pop_back();
      if (seen[static_cast<size_t>(n)]) continue;
      seen[static_cast<size_t>(n)] = true;
      for (const Port& input : g_[n].inputs) pending.push_back(input.node);
      for (const int control : g_[n].controls)
        if (g_[control].effect) pending.push_back(control);
    }
    return seen;
  }

  bool Needs(const std::set<int>& from, int wanted) const {
    std::set<int> seen = from;
    std::vector<int> pending(from.begin(), from.end());
    while (!pending.empty()) {
      const int group = pending.back();
      pending.pop_back();
      if (group == wanted) return true;
      for (const int next : before_[static_cast<size_t>(group)])
        if (seen.insert(next).second) pending.push_back(next);
    }
    return false;
  }

  int GroupOf(Port condition, const std::set<int>& before) {
    std::vector<int>& same = of_condition_[condition];
    constexpr size_t kMostTries = 8;  // the last ones
    for (size_t i = same.size(); i-- > 0 && same.size() - i <= kMostTries;)
      if (!Needs(before, same[i])) return same[i];
    same.push_back(static_cast<int>(groups.size()));
    groups.emplace_back();
    before_.emplace_back();
    return same.back();
  }

  const Graph& g_;
  const States& states_;
  std::vector<std::set<int>> before_;  // by group: those that it needs
  std::map<Port, std::vector<int>> of_condition_;
};

class Conditional {
 public:
  Conditional(Context& context, Graph& g, const States& states, const std::vector<int>& merges)
      : context_(context), g_(g), states_(states), merges_(merges) {}

  // `read`: the outputs that other nodes read.
  Status Extract(const std::set<Port>& read, std::map<Port, Port>& results, std::map<int, int>& done) {
    condition_ = states_.Find(merges_[0])->condition;
    if (!states_.IsOutside(condition_.node)) return Unsupported("its condition is inside of a branch");
    name_ = g_.NameOf(merges_[0]);
    name_.resize(std::min(name_.rfind('/'), name_.size()));
    for (const int merge : merges_) {
      wanted_.push_back({merge, 0});
      if (read.contains({merge, 1})) wanted_.push_back({merge, 1});
    }
    FUSEBOX_ASSIGN(const int made, Build());
    for (size_t i = 0; i < wanted_.size(); ++i) results[wanted_[i]] = {made, static_cast<int>(i)};
    for (const int merge : merges_) done[merge] = made;
    return {};
  }

 private:
  Result<int> Build() {
    Arguments arguments;
    FUSEBOX_ASSIGN(Graph otherwise, Branch(0, arguments));
    FUSEBOX_ASSIGN(Graph then, Branch(1, arguments));
    std::vector<DType> types;
    for (const Port& value : arguments.values) types.push_back(context_.TypeOf(g_, value));
    FUSEBOX_ASSIGN(const std::string else_name,
                   AddFunction(context_, std::move(otherwise), types, name_ + "_false"));
    FUSEBOX_ASSIGN(const std::string then_name,
                   AddFunction(context_, std::move(then), types, name_ + "_true"));
    tf::NodeDef& def = context_.Make("If", name_);
    auto& attrs = *def.mutable_attr();
    attrs["Tcond"].set_type(tf::DT_BOOL);
    attrs["Tin"].mutable_list();
    for (const DType type : types) attrs["Tin"].mutable_list()->add_type(ToDataType(type));
    for (const Port& port : wanted_)
      attrs["Tout"].mutable_list()->add_type(ToDataType(context_.TypeOf(g_, port)));
    attrs["then_branch"].mutable_func()->set_name(then_name);
    attrs["else_branch"].mutable_func()->set_name(else_name);
    std::vector<Port> inputs = {condition_};
    inputs.insert(inputs.end(), arguments.values.begin(), arguments.values.end());
    const int made = g_.Add(def, std::move(inputs));
    for (const int merge : merges_) g_[made].effect |= g_[merge].effect;
    return made;
  }

  Result<Graph> Branch(size_t side, Arguments& arguments) {
    std::vector<Port> results;
    for (const Port& port : wanted_) {
      FUSEBOX_ASSIGN(const Port value,
                     port.output == 0 ? ValueOn(port.node, side) : IndexOn(port.node, side));
      results.push_back(value);
    }
    return v1::Extract(context_, g_, results, {}, [&](Port port) { return Outside(port); }, arguments);
  }

  // The input on this side; several are joined by a Merge in the branch.
  Result<Port> ValueOn(int merge, size_t side) {
    const std::vector<Port> inputs = states_.Find(merge)->inputs[side];
    if (inputs.size() == 1) return inputs[0];
    tf::NodeDef& def = context_.Make("Merge", g_.NameOf(merge));
    *def.mutable_attr() = g_[merge].def->attr();
    (*def.mutable_attr())["N"].set_i(static_cast<int64_t>(inputs.size()));
    return Port{g_.Add(def, inputs), 0};
  }

  Result<Port> IndexOn(int merge, size_t side) {
    const std::vector<Port>& inputs = states_.Find(merge)->inputs[side];
    if (inputs.size() > 1) return Unsupported("the index of one of several inputs of " + g_.NameOf(merge));
    const auto index = std::ranges::find(g_[merge].inputs, inputs[0]) - g_[merge].inputs.begin();
    return Port{g_.Add(MakeIndex(context_, g_.NameOf(merge), static_cast<int>(index)), {}), 0};
  }

  // Values of outside, behind the Switches of this condition.
  Result<std::optional<Port>> Outside(Port port) const {
    for (size_t hop = 0; hop < g_.nodes.size(); ++hop) {
      if (!states_.Has(port.node)) return std::optional<Port>();  // made for this branch
      if (!states_.IsOutside(port.node)) return std::optional<Port>();
      if (g_[port.node].kind != Kind::kSwitch || g_[port.node].inputs.size() != 2) return std::optional(port);
      if (Origin(g_, g_[port.node].inputs[1]) != condition_) return std::optional<Port>();
      port = g_[port.node].inputs[0];
    }
    return Invalid("its nodes form a cycle");
  }

  Context& context_;
  Graph& g_;
  const States& states_;
  const std::vector<int>& merges_;
  Port condition_;
  std::string name_;
  std::vector<Port> wanted_;  // of the Merges
};

bool IsConditional(const Vertex& node) { return node.kind == Kind::kSwitch || node.kind == Kind::kMerge; }

Status CheckOutside(const Graph& g, States& states) {
  const auto refuse = [&](Port port) {
    return Unsupported("refers to " + g.Text(port) + ", which is in a branch of a conditional");
  };
  for (const Port& result : g.results) {
    FUSEBOX_ASSIGN(const int state, states.OfPort(result));
    if (state != 0) return refuse(result);
  }
  for (const int effect : g.effects)
    if (!states.IsOutside(effect)) return refuse({effect, 0});
  return {};
}

}  // namespace

Status ExtractBranches(Context& context, Graph& g) {
  if (std::ranges::none_of(g.nodes, IsConditional)) return {};
  States states(g);
  FUSEBOX_TRY(states.Find());
  FUSEBOX_TRY(CheckOutside(g, states));
  Groups all(g, states);
  FUSEBOX_TRY(all.Find());
  std::set<Port> read(g.results.begin(), g.results.end());
  for (const Vertex& node : g.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  std::map<Port, Port> results;
  std::map<int, int> done;
  for (const std::vector<int>& merges : all.groups)
    FUSEBOX_TRY(Conditional(context, g, states, merges).Extract(read, results, done).At([&] {
      return "node " + g.NameOf(merges[0]) + " (Merge)";
    }));
  Replace(g, results);
  Redirect(g, done);
  Prune(g, false);
  return {};
}

}  // namespace fusebox::saved_model::v1
