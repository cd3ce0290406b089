// SPDX-License-Identifier: Apache-2.0
// The program fusebox-convert, which `fusebox convert` becomes.
#include "cli/command_line.h"

int main(int argc, char** argv) { return fusebox::cli::RunCommandLine(argc, argv, fusebox::cli::AddConvert); }
