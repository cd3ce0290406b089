// SPDX-License-Identifier: Apache-2.0
// Group "rule": sites that a rule was not made for. It declines with a reason, or its replacement is valid.
#include <algorithm>
#include <array>

#include "check/mutate.h"
#include "check/rig.h"
#include "check/tests.h"
#include "host/fusion/fusion.h"

namespace fusebox::check {
namespace {

// One line per rule that was tried, for the comparison of two runs.
std::string TextOf(const std::vector<SiteReport>& sites) {
  std::string text;
  for (const SiteReport& site : sites) {
    text += site.composite + (site.fused ? " fused" : " kept") + "\n";
    for (const RuleReport& rule : site.rules) {
      text += rule.rule + " " + std::string(Name(rule.outcome));
      for (const std::string& reason : rule.reasons) text += "; " + reason;
      text += "\n";
    }
  }
  return text;
}

// Rules without code cannot check all that kernels check, and other plugins may have the kernels of emitted
// ops.
bool IsMistake(const Manifest& manifest, const RuleReport& rule, const std::string& reason) {
  const auto same = [&](const ManifestRule& of) { return of.id == rule.rule && of.rewrite; };
  if (reason.find("the replacement is invalid") == std::string::npos) return false;
  if (std::ranges::any_of(manifest.rules, same)) return false;
  return reason.find("no kernel for") == std::string::npos ||
         reason.find("declined by " + manifest.id) != std::string::npos;
}

// Returns the first report that no rule may make for any site, or an empty string if there is none.
std::string Mistake(const Manifest& manifest, const std::vector<SiteReport>& sites) {
  for (const SiteReport& site : sites) {
    for (const RuleReport& rule : site.rules) {
      for (const std::string& reason : rule.reasons) {
        if (reason == "the rule returned no reason")
          return "rule " + rule.rule + " declines a site without a reason; emit one";
        if (IsMistake(manifest, rule, reason))
          return "rule " + rule.rule + " accepts a site that it does not fit: " + reason;
      }
    }
  }
  return {};
}

Finding Sites(const Subject& subject) {
  const auto rig = Rig::Create(subject.manifest, subject.options.config, {});
  if (!rig) return Failed(rig.error().message);
  size_t tried = 0;
  size_t fused = 0;
  for (const auto& module : CompositesLikeThoseOf(subject)) {
    if (!Verify(*module)) continue;  // the host refuses it
    std::array<std::string, 2> texts;
    for (std::string& text : texts) {
      const auto copy = Clone(*module);
      const auto sites = Fuse(*copy, *(*rig)->registry());
      if (!sites) return Failed(sites.error().message);
      text = TextOf(*sites);
      if (const std::string mistake = Mistake(subject.manifest, *sites); !mistake.empty())
        return Failed(mistake);
      for (const SiteReport& site : *sites) fused += site.fused;
    }
    ++tried;
    if (texts[0] != texts[1])
      return Failed("the same site has two results, so the rule keeps state: " + texts[0] + " and " +
                    texts[1]);
  }
  if (fused == 0)
    return NotTested(std::to_string(tried) + " sites, none of which a rule accepts; add a model");
  return Passed(std::to_string(tried) + " sites, " + std::to_string(fused / 2) + " fused");
}

constexpr std::array kRuleTests = {
    Test{"rule.sites", "rules decline sites that they were not made for, with a reason", Test::Of::kPlugin,
         Sites},
};

}  // namespace

std::span<const Test> RuleTests() { return kRuleTests; }

}  // namespace fusebox::check
