// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/pass.h"

namespace fusebox::converter {

const std::vector<Pass>& Passes() {
  static const std::vector<Pass> all = {
#define FUSEBOX_PASS(name, function, run_by, what) {name, what, function, Pass::run_by},
#include "converter/passes/passes.def"
#undef FUSEBOX_PASS
  };
  return all;
}

Status RunPasses(Context& context) {
  Progress progress{.what = {}, .done = 0, .total = Passes().size(), .unit = Progress::Unit::kSteps};
  for (const Pass& pass : Passes()) {
    if (context.options.progress) {
      progress.what = "pass " + std::string(pass.name);
      context.options.progress(progress);
      ++progress.done;
    }
    const std::string place = "pass " + std::string(pass.name);
    FUSEBOX_TRY(pass.run(context).At(place));
    if (context.options.after_pass) context.options.after_pass(pass.name, context.module);
    if (Status sound = Verify(context.module); !sound)
      return Internal(place + " left a broken graph: " + sound.error().message);
  }
  return {};
}

Status RunVerificationPasses(Context& context) {
  for (const Pass& pass : Passes())
    if (pass.run_by == Pass::kAlsoVerification)
      FUSEBOX_TRY(pass.run(context).At("pass " + std::string(pass.name)));
  return {};
}

}  // namespace fusebox::converter
