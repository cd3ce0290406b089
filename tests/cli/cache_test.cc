// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "host/tflite/tflite.h"
#include "tests/cli/command.h"

namespace fusebox::cli_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// y = w x, f32; two signatures over the same weights, one of them for any number of rows.
std::string WriteDense(const std::string& name, float seed, int64_t size = 32) {
  Module module;
  std::vector<float> weights(static_cast<size_t>(size * size));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = seed + 0.01f * static_cast<float>(i % 97);
  const Buffer shared = Buffer::Of<float>(weights);
  for (const auto& [function, rows] : {std::pair<const char*, int64_t>{"many", -1}, {"one", 1}}) {
    Function& f = module.Add(function);
    const ValueId x = f.AddInput({DType::kF32, {rows, size}}, "x");
    const ValueId w = f.AddConst({DType::kF32, {size, size}}, Buffer(shared));
    f.outputs = {f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {{DType::kF32, {rows, size}}}).results[0]};
    module.signatures.push_back({function, function, {"x"}, {"y"}});
  }
  const std::string path = Path(name);
  const Status written = tflite::WriteFile(module, path);
  EXPECT_TRUE(written) << written.error().message;
  return path;
}

Finished Cache(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "cache");
  arguments.insert(arguments.end(), {"--plugin", PluginFolder("fusebox.xnnpack")});
  return Fusebox(arguments);
}

std::string Segment(const std::string& cache) {
  for (const auto& entry : fs::directory_iterator(cache + "segments")) return entry.path();
  return "";
}

void Flip(const std::string& file, long at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  const auto byte = static_cast<char>(stream.get());
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 1));
}

TEST(Cache, BuildPacksOnceForAllSignatures) {
  const std::string model = WriteDense("m.tflite", 1), cache = Path("cache/");
  const Finished cold = Cache({"build", model, "--weight-cache", cache, "--json"});
  ASSERT_EQ(cold.status, 0) << cold.err;
  EXPECT_EQ(cold.Json()["packed_bytes_of_model"], 32 * 32 * 4);
  EXPECT_EQ(cold.Json()["classes"]["cached"]["found"], 1);
  EXPECT_EQ(cold.Json()["warm"], true);
  EXPECT_THAT(cold.err, HasSubstr("packing weights: 4.1 KB")) << "lines, where there is no terminal";
  EXPECT_THAT(cold.err, HasSubstr("packed 4.1 KB of weights in"));
  const auto segments = FilesBelow(cache + "segments");
  EXPECT_THAT(segments, SizeIs(1));
  const Finished warm = Cache({"build", model, "--weight-cache", cache, "--json"});
  EXPECT_EQ(warm.status, 0) << warm.err;
  EXPECT_EQ(warm.err, "") << "nothing is packed";
  EXPECT_EQ(warm.Json()["packed_bytes_of_model"], 0);
  EXPECT_EQ(FilesBelow(cache + "segments"), segments);
}

// What the command shows on a terminal.
std::string OnTerminal(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), FUSEBOX_COMMAND);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("FUSEBOX_PLUGIN_PATH", "", 1);
    execv(FUSEBOX_COMMAND, words.data());
    _exit(127);
  }
  std::string shown;
  char part[4096];
  // Ends with an error once nobody has the other side open.
  for (ssize_t n; (n = read(terminal, part, sizeof part)) > 0;) shown.append(part, static_cast<size_t>(n));
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << shown;
  return std::regex_replace(shown, std::regex("\x1b\\[[0-9]*m"), "");  // without colors
}

TEST(Cache, ATerminalGetsABarThatGoes) {
  const std::vector<std::string> line = {
      "cache",        "build",    WriteDense("m.tflite", 1),      "--weight-cache",
      Path("cache/"), "--plugin", PluginFolder("fusebox.xnnpack")};
  const std::string cold = OnTerminal(line);
  EXPECT_THAT(cold, HasSubstr("\rpacking weights [" + std::string(30, ' ') + "]   0 %, 0 B of 4.1 KB\x1b[K"));
  EXPECT_THAT(cold, HasSubstr("\r\x1b[Kfusebox: packed 4.1 KB of weights in"));
  EXPECT_LE(std::count(cold.begin(), cold.end(), '['), 8) << "no more than ten times a second";
  EXPECT_THAT(OnTerminal(line), testing::Not(HasSubstr("\x1b"))) << "nothing is packed: no bar";
}

TEST(Cache, RunPacksWhatBuildWouldAndSaysSo) {
  const std::string model = WriteDense("m.tflite", 1), cache = Path("cache/");
  const std::vector<std::string> line = {
      "run", model, "--signature", "one", "--plugin", PluginFolder("fusebox.xnnpack"), "--weight-cache",
      cache};
  EXPECT_THAT(Fusebox(line).err, HasSubstr("packing weights: 4.1 KB"));
  EXPECT_EQ(Fusebox(line).err, "");
  EXPECT_EQ(Cache({"doctor", model, "--weight-cache", cache}).status, 0);
}

TEST(Cache, DoctorSaysWhatIsMissingAndWhy) {
  const std::string model = WriteDense("m.tflite", 1), other = WriteDense("o.tflite", 2),
                    cache = Path("cache/");
  const Finished none = Cache({"doctor", model, "--weight-cache", cache});
  EXPECT_EQ(none.status, 1) << none.err;
  EXPECT_THAT(none.out, HasSubstr("no weight cache here"));
  EXPECT_THAT(none.out, HasSubstr("never packed"));
  EXPECT_THAT(none.out, HasSubstr("fingerprint of fully connected: "));
  EXPECT_FALSE(fs::exists(cache));
  ASSERT_EQ(Cache({"build", model, "--weight-cache", cache}).status, 0);
  const Finished warm = Cache({"doctor", model, "--weight-cache", cache, "--json"});
  EXPECT_EQ(warm.status, 0) << warm.err;
  EXPECT_EQ(warm.Json()["weights"].size(), 2u) << "one per node";
  EXPECT_EQ(warm.Json()["classes"]["cached"]["weights"], 1) << "that share one entry";
  EXPECT_EQ(warm.Json()["weights"][0]["found"], true);
  const Finished edited = Cache({"doctor", other, "--weight-cache", cache, "--json"});
  EXPECT_EQ(edited.status, 1);
  EXPECT_EQ(edited.Json()["weights"][0]["code"], "weights");
}

// Where something else stands, and where there is no home, packing ahead would keep nothing.
TEST(Cache, DoctorDoesNotAdviseABuildThatCannotKeepAnything) {
  const std::string model = WriteDense("m.tflite", 1), letter = Path("letter.txt"), folder = Path("folder/");
  std::ofstream(letter) << "dear";
  fs::create_directory(folder);
  const std::string no = "this cache cannot store them; choose another with --weight-cache",
                    yes = "packs them now";
  EXPECT_THAT(Cache({"doctor", model, "--weight-cache", letter}).out, HasSubstr(no));
  EXPECT_THAT(Cache({"doctor", model, "--weight-cache", model}).out, HasSubstr(no));
  EXPECT_THAT(Cache({"doctor", model, "--weight-cache", folder}).out, HasSubstr(yes));
  EXPECT_THAT(Cache({"doctor", model, "--weight-cache", Path("gone/")}).out, HasSubstr(yes));
}

TEST(Cache, ListsSegmentsAndEntries) {
  const std::string cache = Path("cache/");
  ASSERT_EQ(Cache({"build", WriteDense("m.tflite", 1), "--weight-cache", cache}).status, 0);
  const Finished ls = Cache({"ls", cache});
  EXPECT_EQ(ls.status, 0) << ls.err;
  EXPECT_THAT(ls.out, HasSubstr("a directory, 1 segment, "));
  EXPECT_THAT(ls.out, HasSubstr("verified"));
  const auto json = Cache({"ls", cache, "--json"}).Json();
  EXPECT_EQ(Cache({"ls", "--weight-cache", cache}).out, ls.out);
  EXPECT_EQ(json["path"], cache.substr(0, cache.size() - 1));
  ASSERT_EQ(json["segments"].size(), 1u);
  EXPECT_EQ(json["segments"][0]["state"], "verified");
  EXPECT_EQ(json["bytes"], fs::file_size(Segment(cache)));
  const auto info = Cache({"info", cache, "--json"}).Json();
  ASSERT_EQ(info["entries"].size(), 1u);
  EXPECT_EQ(info["entries"][0]["weights"], "f32 32x32");
  EXPECT_EQ(info["entries"][0]["family"], "fully connected");
  EXPECT_EQ(info["entries"][0]["for_this_machine"], true);
  EXPECT_THAT(info["machine"]["library"].get<std::string>(), HasSubstr("XNNPACK "));
  EXPECT_EQ(Cache({"info", cache, "--segment", "nothing"}).status, 2);
}

TEST(Cache, ASingleFileIsACacheToo) {
  const std::string model = WriteDense("m.tflite", 1), cache = Path("weights.fbpk");
  ASSERT_EQ(Cache({"build", model, "--weight-cache", cache}).status, 0);
  EXPECT_EQ(Cache({"ls", cache, "--json"}).Json()["single_file"], true);
  EXPECT_EQ(Cache({"doctor", model, "--weight-cache", cache}).status, 0);
  EXPECT_EQ(Cache({"rm", cache, "--all"}).status, 0);
  EXPECT_FALSE(fs::exists(cache));
  EXPECT_FALSE(fs::exists(cache + ".d"));
}

TEST(Cache, VerifyNamesWhatIsBad) {
  const std::string cache = Path("cache/"), model = WriteDense("m.tflite", 1);
  ASSERT_EQ(Cache({"build", model, "--weight-cache", cache}).status, 0);
  EXPECT_EQ(Cache({"verify", cache}).status, 0);
  const std::string segment = Segment(cache);
  Flip(segment, 4096);
  const Finished bad = Cache({"verify", cache});
  EXPECT_EQ(bad.status, 1) << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("bad: " + segment));
  EXPECT_THAT(bad.out, HasSubstr("put aside " + segment));
  EXPECT_EQ(Cache({"verify", cache}).status, 0) << "what was put aside is told, and does not count";
  EXPECT_EQ(Cache({"doctor", model, "--weight-cache", cache}).status, 1);
  ASSERT_EQ(Cache({"build", model, "--weight-cache", cache}).status, 0);
  EXPECT_EQ(Cache({"doctor", model, "--weight-cache", cache}).status, 0);
}

TEST(Cache, LeavesALaterFormatAlone) {
  const std::string cache = Path("cache/");
  ASSERT_EQ(Cache({"build", WriteDense("m.tflite", 1), "--weight-cache", cache}).status, 0);
  Flip(Segment(cache), 9);
  const Finished verify = Cache({"verify", cache, "--json"});
  EXPECT_EQ(verify.status, 0) << verify.err;
  EXPECT_EQ(verify.Json()["segments"][0]["state"], "unusable");
  EXPECT_THAT(verify.Json()["segments"][0]["reason"].get<std::string>(), HasSubstr("has format 257"));
}

TEST(Cache, CollectsGarbageDownToASize) {
  const std::string cache = Path("cache/");
  for (const float seed : {1.0f, 2.0f})
    ASSERT_EQ(Cache({"build", WriteDense("m.tflite", seed), "--weight-cache", cache}).status, 0);
  EXPECT_THAT(FilesBelow(cache + "segments"), SizeIs(2));
  const Finished all = Cache({"gc", cache, "--max-bytes", "1G", "--json"});
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_THAT(all.Json()["removed"], IsEmpty());
  const Finished some = Cache({"gc", cache, "--max-bytes", "10K", "--json"});
  EXPECT_EQ(some.Json()["removed"].size(), 1u);
  EXPECT_LE(some.Json()["bytes"], 10'000);
  EXPECT_THAT(Cache({"gc", cache, "--max-bytes", "0"}).out, HasSubstr("removed 1 file"));
  EXPECT_EQ(Cache({"gc", cache, "--max-bytes", "much"}).status, 2);
  EXPECT_EQ(Cache({"gc", cache, "--max-bytes", "-5"}).status, 2);
}

TEST(Cache, RemovesWhatItIsTold) {
  const std::string cache = Path("cache/"), one = WriteDense("1.tflite", 1), two = WriteDense("2.tflite", 2);
  for (const std::string& model : {one, two})
    ASSERT_EQ(Cache({"build", model, "--weight-cache", cache}).status, 0);
  EXPECT_EQ(Cache({"rm", cache}).status, 2) << "what?";
  const Finished first = Cache({"rm", cache, "--model", one});
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("removed 1 file"));
  EXPECT_EQ(Cache({"doctor", one, "--weight-cache", cache}).status, 1);
  EXPECT_EQ(Cache({"doctor", two, "--weight-cache", cache}).status, 0);
  const std::string id = fs::path(Segment(cache)).stem();
  EXPECT_THAT(Cache({"rm", cache, "--segment", id.substr(0, 8)}).out, HasSubstr(id));
  EXPECT_THAT(Cache({"rm", cache, "--all"}).out, HasSubstr("removed "));
  EXPECT_FALSE(fs::exists(cache));
}

TEST(Cache, RefusesWhatIsNone) {
  const std::string folder = Path("letters/"), letter = folder + "letter.txt", pipe = Path("pipe.fbpk");
  fs::create_directory(folder);
  std::ofstream(letter) << "dear";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& what : {folder, letter, Path("gone/"), pipe}) {
    for (const char* command : {"ls", "info", "verify", "gc"})
      EXPECT_EQ(Cache({command, what}).status, 2) << command << " " << what;
    EXPECT_EQ(Cache({"rm", what, "--all"}).status, 2) << what;
  }
  EXPECT_TRUE(fs::exists(letter));
  EXPECT_THAT(Cache({"ls", folder}).err, HasSubstr("is not a weight cache"));
}

TEST(Cache, TheDefaultOneNeedNotBeThereYet) {
  const std::string config = Path("fusebox.json");
  std::ofstream(config)
      << R"({"delegates": [{"name": "xnnpack", "options": {"weight_cache_path": "kept/"}}]})";
  const Finished ls = Cache({"ls", "--config", config, "--json"});
  EXPECT_EQ(ls.status, 0) << ls.err;
  EXPECT_THAT(ls.err, HasSubstr(Path("kept") + ": no weight cache here"));
  EXPECT_TRUE(ls.Json()["path"].is_null());
  ASSERT_EQ(Cache({"build", WriteDense("m.tflite", 1), "--config", config}).status, 0);
  EXPECT_EQ(Cache({"ls", "--config", config, "--json"}).Json()["segments"].size(), 1u);
}

TEST(Cache, NeedsAPluginThatKeepsOne) {
  const Finished done = Fusebox({"cache", "ls"});
  EXPECT_EQ(done.status, 2);
  EXPECT_THAT(done.err, HasSubstr("no plugin provides a weight cache"));
}

}  // namespace
}  // namespace fusebox::cli_test
