// SPDX-License-Identifier: Apache-2.0
// Reports plugins that crash, abort or call exit: "com.acme.x crashed in rule acme.y at node Z (signal
// SIGSEGV)". The process then ends with status 3.
#pragma once

namespace fusebox::cli {

// Installs handlers of signals and of exit. Called once, by the main thread. Signals that a sanitizer handles
// stay with it. Without a call of a plugin, the handlers change nothing.
void ReportPluginCrashes();

}  // namespace fusebox::cli
