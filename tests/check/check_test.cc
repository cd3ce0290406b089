// SPDX-License-Identifier: Apache-2.0
// `fusebox plugin check` finds each planted fault, with the test that it is for, and passes honest plugins.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "check/check.h"
#include "host/base/buffer.h"
#include "tests/check/models.h"

namespace fusebox {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Finished {
  int status = -1;
  std::string out, err;
};

Finished RunCheck(const std::string& arguments) {
  const std::string base = testing::TempDir() + "fusebox_check." + std::to_string(getpid());
  const std::string line = "FUSEBOX_PLUGIN_PATH= " FUSEBOX_COMMAND " plugin check " + arguments + " >" +
                           base + ".out 2>" + base + ".err";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, ReadTextFile(base + ".out").value_or(""),
          ReadTextFile(base + ".err").value_or("")};
}

std::string ModelFlags() {
  static const std::string folder = WritePlantedModels();
  return " --model " + folder + "/norm.tflite --model " + folder + "/relu.tflite --model " + folder +
         "/sums.tflite";
}

struct Planted {
  const char *name, *test, *text;
  const char* flags = "";
};

void PrintTo(const Planted& planted, std::ostream* out) { *out << planted.name; }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
constexpr const char *kSegv = "the process ended", *kDivision = kSegv;
#else
constexpr bool kSanitized = false;
constexpr const char *kSegv = "killed by signal 11", *kDivision = "killed by signal 8";
#endif

// The block that an access missed; sanitizers end the process before.
constexpr const char* At(const char* block) { return kSanitized ? kSegv : block; }

// Found by measures of malloc and by a limit of address space, which sanitizers exclude.
bool NeedsPlainBuild(const std::string& name) {
  return name == "HugeAllocation" || name == "LeakPerLoad" || name == "LeakPerSession";
}

// Static facts.
constexpr Planted kFile[] = {
    {"ExtraSymbol", "file.exports", "it also exports planted_helper"},
    {"LinksFusebox", "file.needed", "it needs libfusebox_planted.so"},
    {"ExecutableStack", "file.stack", "executable"},
    {"TextRelocation", "file.text", "DT_TEXTREL"},
    {"RunPath", "file.runpath", "/opt/acme/lib"},
    {"MissingOp", "load.host",
     "the manifest lists a kernel for custom planted.more, but the library has none"},
    {"OtherMinor", "load.host", "it needs a host with plugin ABI 1.1"},
    {"LeakPerLoad", "load.cycles", "each load and unload leaks"},
    {"UnloadCrash", "load.host", " in unload of planted.plugin"},
};

constexpr Planted kProcess[] = {
    {"StdoutNoise", "process.output", "\"planted.norm runs\""},
    {"LeftFile", "process.folder", "planted.cache"},
    {"OpenFile", "process.files", "/dev/null"},
    {"LeftThread", "process.threads", "threads after unload"},
    {"LeakPerSession", "process.memory", "leaks"},
    {"SignalHandler", "process.signals", "signal 10"},
    {"RoundingMode", "process.settings", "rounding"},
    {"Locale", "process.settings", "locale"},
    {"SetsEnvironment", "process.settings", "environment"},
    {"ChangesFolder", "process.settings", "current folder"},
    {"Abort", "kernel.bounds", "killed by signal 6 (Aborted) in invoke of planted.norm"},
    {"Throw", "kernel.bounds", "killed by signal 6 (Aborted) in invoke of planted.norm"},
    {"ExitZero", "kernel.bounds", "the process ended (exit was called) in invoke of planted.norm"},
    {"EndlessLoop", "kernel.bounds", "not done after 5 s in invoke of planted.norm", " --timeout 5"},
    {"HugeAllocation", "kernel.bounds", "out of memory"},
};

constexpr Planted kKernel[] = {
    {"ReadPastEnd", "kernel.uninitialized", "bytes behind a buffer"},
    {"ReadBeforeStart", "kernel.bounds", At(" 4 bytes before the begin of operand 0")},
    {"WritePastEnd", "kernel.bounds", "writes outside of result 0, "},
    {"WriteBeforeStart", "kernel.bounds", At(" 4 bytes before the begin of result 0")},
    {"WriteInput", "kernel.bounds", At(" of operand 0, which is read-only")},
    {"WriteConstant", "kernel.bounds", At(" of constant operand 1, which is read-only")},
    {"FreedScratch", "kernel.bounds", At(" of scratch slot 0, which is read-only or no longer valid")},
    {"KeptView", "kernel.bounds", At(" of a view of a callback, which is read-only or no longer valid")},
    {"KeptHost", "kernel.bounds", At(" of a view of a callback")},
    {"KeptText", "kernel.bounds", At(" of a view of a callback")},
    {"SpinsOnNan", "kernel.special", "not done after 5 s in invoke of planted.norm", " --timeout 5"},
    {"AbortsOnInfinity", "kernel.special", "killed by signal 6 (Aborted) in invoke of planted.norm"},
    {"IgnoredAttribute", "kernel.attributes", "no value of the attribute epsilon of planted.norm"},
    {"FixedWorkers", "kernel.chunks", At(" bytes after the end of scratch slot 0")},
    {"FlushesInWorkers", "kernel.chunks", "mode of floating-point arithmetic"},
    {"RoundsInWorkers", "kernel.chunks", "mode of floating-point arithmetic"},
    {"UninitializedScratch", "kernel.uninitialized", "was not written"},
    {"TailSkipped", "kernel.uninitialized", "was not written"},
    {"ResultIsInput", "kernel.uninitialized", "was not written"},
    {"SessionLeak", "kernel.sessions", "a second session computes something else"},
    {"StateKeptByReset", "kernel.reset", "after ResetState"},
    {"DataRace", "kernel.chunks", "which is a data race"},
    {"OrderOfChunks", "kernel.chunks", "order of the chunks"},
    {"ThreadCount", "kernel.threads", "1 thread and 2 threads compute different results: "},
    {"NotDeterministic", "kernel.threads", "FBX_KERNEL_DETERMINISTIC"},
    {"SupportsAnything", "kernel.signatures", kSegv},
};

constexpr Planted kContract[] = {
    {"EpsilonDropped", "body.values", "planted.norm differs from its body"},
    {"SumForMean", "body.values", "planted.norm differs from its body"},
    {"WeightsTransposed", "body.values", "planted.norm differs from its body"},
    {"WrongAxis", "body.values", "planted.norm differs from its body"},
    {"WrongScale", "body.values", "planted.relu differs from its body"},
    {"WrongZeroPoint", "body.values", "planted.relu differs from its body"},
    {"Truncates", "body.values", "steps on average"},
    {"SwallowsNan", "body.nan", "output 0 of the body is NaN, that of the fused op is not"},
    {"ZeroWeights", "body.computed", "planted.norm differs from its body"},
    {"WrongInLargeBatches", "body.shapes", "for inputs of [65,7]"},
    {"WrongInHugeBatches", "body.shapes", "for inputs of ["},
    {"EmptyBatch", "body.shapes", kDivision},
    {"SizesCompared", "abi.newer", "is invoked 0 times, but 2 times in this host"},
    {"VersionCompared", "abi.newer", "is invoked 0 times, but 2 times in this host"},
    {"OptionalRequired", "abi.extensions", "FBX_UNSUPPORTED"},
    {"RuleReadsAbsent", "rule.sites", kSegv},
    {"RuleWithoutReason", "rule.sites", "declines a site without a reason"},
    {"RuleAcceptsAll", "rule.sites", "accepts a site that it does not fit"},
    {"RuleKeepsState", "rule.sites", "keeps state"},
};

constexpr Planted kDelegate[] = {
    {"DelegateSumsOnly", "delegate.agrees", "kernels and delegate compute different results"},
    {"DelegateWholeGraphOnly", "delegate.partitions", "with half of the nodes on kernels"},
    {"DelegateOldSizeAfterResize", "delegate.resize", "after a resize"},
    {"DelegateSessionNeedsPartition", "delegate.refusal", kSegv},
    {"DelegateFailsCreate", "delegate.refusal", "the delegate runs nothing of this model: create fails"},
    {"DelegateFailsPrepare", "delegate.partitions", "the delegate runs nothing of this model: prepare fails"},
    {"DelegateNeedsOption", "delegate.resize", "the delegate runs nothing of this model: create fails"},
};

class PlantedFaults : public testing::TestWithParam<Planted> {};

TEST_P(PlantedFaults, AreFoundByTheTestForThem) {
  const Planted& planted = GetParam();
  if (kSanitized && NeedsPlainBuild(planted.name)) GTEST_SKIP() << "a sanitizer allocates for itself";
  const Finished done = RunCheck(FUSEBOX_PLANTED "/" + std::string(planted.name) + ModelFlags() + " --only " +
                                 planted.test + planted.flags + " --json");
  EXPECT_EQ(done.status, 1) << done.out << done.err;
  const json report = json::parse(done.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << done.out << done.err;
  std::string why;
  for (const json& row : report["tests"])
    if (row["result"] == "failed") why += row["reason"].get<std::string>() + "\n";
  EXPECT_THAT(why, HasSubstr(planted.text));
}

constexpr auto kNameOfPlanted = [](const auto& info) { return std::string(info.param.name); };
INSTANTIATE_TEST_SUITE_P(File, PlantedFaults, testing::ValuesIn(kFile), kNameOfPlanted);
INSTANTIATE_TEST_SUITE_P(Process, PlantedFaults, testing::ValuesIn(kProcess), kNameOfPlanted);
INSTANTIATE_TEST_SUITE_P(Kernel, PlantedFaults, testing::ValuesIn(kKernel), kNameOfPlanted);
INSTANTIATE_TEST_SUITE_P(Delegate, PlantedFaults, testing::ValuesIn(kDelegate), kNameOfPlanted);
INSTANTIATE_TEST_SUITE_P(Contract, PlantedFaults, testing::ValuesIn(kContract), kNameOfPlanted);

TEST(PlantedPlugin, WithoutFaultPassesAllTests) {
  for (const char* name : {"None", "DelegateNone"}) {
    const Finished done = RunCheck(FUSEBOX_PLANTED "/" + std::string(name) + ModelFlags() + " --timeout 60");
    EXPECT_EQ(done.status, 0) << done.out << done.err;
    EXPECT_THAT(done.out, HasSubstr(" 0 failed"));
  }
}

#if defined(__x86_64__)
TEST(PlantedPlugin, AccessIsAReadOrAWrite) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer reports it";
  for (const auto& [name, kind] : {std::pair("ReadBeforeStart", ": read "), {"WriteBeforeStart", ": write "}})
    EXPECT_THAT(
        RunCheck(FUSEBOX_PLANTED "/" + std::string(name) + ModelFlags() + " --only kernel.bounds").out,
        HasSubstr(std::string(" in invoke of planted.norm") + kind));
}
#endif

TEST(PlantedPlugin, WhoseRulesAcceptNothingIsNotTested) {
  const Finished done =
      RunCheck(FUSEBOX_PLANTED "/RuleDeclinesAll" + ModelFlags() + " --only rule.sites --json");
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  const json row = json::parse(done.out)["tests"].at(0);
  EXPECT_EQ(row["result"], "not tested");
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr(" sites, none of which a rule accepts"));
}

TEST(PlantedPlugin, GetsTheOptionsOfItsDelegate) {
  const std::string config = testing::TempDir() + "options.json";
  std::ofstream(config) << R"({"delegates": [{"name": "sums", "options": {"device": "one"}}]})";
  const Finished done =
      RunCheck(FUSEBOX_PLANTED "/DelegateNeedsOption" + ModelFlags() + " --only delegate --config " + config);
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr(" 0 failed"));
}

TEST(DeclaredPlugin, PassesWithoutCode) {
  const std::string folder = testing::TempDir() + "declared";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/fusebox-plugin.json") << R"({"manifest_version": "1.0",
 "plugin": {"id": "acme.declared", "version": "1.0.0", "namespace": "acme"}, "abi": {"major": 1},
 "provides": {"rules": [{"id": "acme.l2", "implements": ["acme.l2"], "emits": [{"builtin": "L2_NORMALIZATION"}],
                         "rewrite": {"operands": [0]}}]}})";
  const Finished done = RunCheck(folder);
  EXPECT_EQ(done.status, 0) << done.out << done.err;
  EXPECT_THAT(done.out, HasSubstr("80 sites, "));
}

TEST(PlantedPlugin, ThatCrashesIsReportedWithTheWholeTable) {
  const Finished done =
      RunCheck(FUSEBOX_PLANTED "/Abort" + ModelFlags() + " --junit " + testing::TempDir() + "junit.xml");
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.out, HasSubstr("file.exports"));
  EXPECT_THAT(done.out, HasSubstr("delegate.resize"));
  EXPECT_THAT(done.out, HasSubstr("to reproduce: fusebox plugin check " FUSEBOX_PLANTED
                                  "/Abort/fusebox-plugin.json --only kernel.bounds --seed 1 --model "));
  const std::string xml = ReadTextFile(testing::TempDir() + "junit.xml").value_or("");
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"planted.plugin\" name=\"kernel.bounds norm.tflite\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"killed by signal 6 (Aborted) in invoke of planted.norm\">"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"the plugin has no delegates\"/>"));
}

TEST(CheckCommand, HasADescriptionOfEachTest) {
  const std::string page = ReadTextFile(FUSEBOX_SOURCE_DIR "/docs/check.md").value_or("");
  for (const check::TestName& test : check::TestNames())
    EXPECT_THAT(page, HasSubstr("\n| " + test.name + " | "));
}

TEST(CheckCommand, RejectsUnknownNamesAndFiles) {
  Finished done = RunCheck(FUSEBOX_PLANTED "/None --only kernel.thread");
  EXPECT_EQ(done.status, 2);
  EXPECT_EQ(done.err, "fusebox: no test or group of tests kernel.thread; did you mean \"kernel.threads\"?\n");
  done = RunCheck(FUSEBOX_PLANTED "/Nowhere");
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("/Nowhere: no such file or folder"));
  done = RunCheck(FUSEBOX_PLANTED "/None --model " FUSEBOX_PLANTED "/None/planted.so");
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("/None/planted.so"));
}

}  // namespace
}  // namespace fusebox
