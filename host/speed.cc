// SPDX-License-Identifier: Apache-2.0
#include "host/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "host/session.h"
#include "host/verify/cases.h"

namespace fusebox {
namespace {

constexpr size_t kLeastRuns = 3;
constexpr size_t kMostRuns = 31;
constexpr double kMicroseconds = 1e5;  // of all runs

// Opens the model, sets its inputs, and runs it once.
Result<std::unique_ptr<Session>> Start(std::unique_ptr<Module> module, const std::vector<Shape>& shapes,
                                       const std::shared_ptr<Registry>& registry, bool fuse) {
  ModelOptions options;
  options.registry = registry;
  options.fuse = fuse;
  FUSEBOX_ASSIGN(const auto model, Model::FromModule(std::move(module), options));
  SessionOptions session_options;
  session_options.threads = 1;
  FUSEBOX_ASSIGN(auto session, Session::Create(model, session_options));
  for (size_t i = 0; i < session->inputs().size() && i < shapes.size(); ++i) {
    const Type type{session->inputs()[i].type.dtype, shapes[i]};
    if (!type.shape.is_static()) return Invalid("the shape of input " + std::to_string(i) + " is unknown");
    const Tensor input = verify::MakeOperand(type, verify::ValueClass::kNormal, 1, i);
    if (!input.data) return Invalid("there are no values for input " + std::to_string(i));
    FUSEBOX_TRY(session->Resize(static_cast<int>(i), type.shape));
    FUSEBOX_TRY(session->SetInput(static_cast<int>(i), input));
  }
  FUSEBOX_TRY(session->Run());
  return session;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::string Speed::Text() const {
  return fmt::format("the fused op takes {:.3g} us, its body with the default delegates {:.3g} us", fused,
                     body);
}

Result<Speed> CompareSpeed(std::unique_ptr<Module> fused, std::unique_ptr<Module> body,
                           const std::vector<Shape>& shapes, const std::shared_ptr<Registry>& registry) {
  FUSEBOX_ASSIGN(const auto first, Start(std::move(fused), shapes, registry, true));
  FUSEBOX_ASSIGN(const auto second, Start(std::move(body), shapes, registry, false));
  std::array<std::vector<double>, 2> times;
  Speed speed;
  for (double total = 0;
       times[0].size() < kMostRuns && (times[0].size() < kLeastRuns || total < kMicroseconds);) {
    for (const size_t i : {0, 1}) {
      const auto start = std::chrono::steady_clock::now();
      FUSEBOX_TRY((i == 0 ? first : second)->Run());
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
      times[i].push_back(spent.count());
      total += spent.count();
    }
    speed = {Median(times[0]), Median(times[1])};
    if (times[0].size() >= kLeastRuns && !speed.slower()) break;
  }
  return speed;
}

}  // namespace fusebox
