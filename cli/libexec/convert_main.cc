// SPDX-License-Identifier: Apache-2.0
// The program fusebox-convert, which `fusebox convert` and `fusebox model` become.
#include "cli/base/command_line.h"

int main(int argc, char** argv) {
  return fusebox::cli::RunCommandLine(argc, argv, [](CLI::App& root, fusebox::cli::Action& action) {
    fusebox::cli::AddConvert(root, action);
    fusebox::cli::AddModel(root, action);
  });
}
