// The receiver of docs/examples, against versions whole and harmed.

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "base/testing/python.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tool/publish/publisher.h"
#include "tool/publish/testing/publisher_fixture.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ReceiverTest = PublisherFixture;

TEST_F(ReceiverTest, RebuildsEveryByte) {
  SKIP_WITHOUT_PYTHON();
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  std::set<VersionFormat> formats;
  for (const int changed : {0, 0, 1, 20, 400, 3000, 8000}) {
    ASSERT_OK_AND_ASSIGN(const Publication publication,
                         PublishNext(publisher, changed));
    formats.insert(publication.version.format);
    const Received received = Receive();
    ASSERT_EQ(received.code, 0) << received.errors;
    EXPECT_THAT(received.errors, IsEmpty());
    EXPECT_EQ(received.output,
              absl::StrCat("version ", publication.version.version, ": step ",
                           model_.step, "\n"));
    EXPECT_EQ(received.tensors.at("dense/kernel"), KernelBytes());
    EXPECT_EQ(received.tensors,
              // The publisher's own state of the newest version.
              TensorsAt(publication.version.base
                            ? Out(absl::StrCat(
                                  ".publisher/",
                                  VersionName(publication.version.version),
                                  ".safetensors"))
                            : Out("weight_v000001/"
                                  "model-00001-of-00001.safetensors")));
  }
  EXPECT_EQ(formats.size(), 3);
}

void Move(const std::string& from, const std::string& to) {
  fs::rename(from, to);
}

void Swap(const std::string& a, const std::string& b) {
  Move(a, b + ".swap");
  Move(b, a);
  Move(b + ".swap", b);
}

void Replace(const std::string& path, const std::string& from,
             const std::string& to) {
  std::string text = TextOf(path);
  ASSERT_NE(text.find(from), std::string::npos);
  text.replace(text.find(from), from.size(), to);
  std::ofstream(path) << text;
}

// Makes the first zstd frame of a delta say that its content has 2^60 bytes.
void Inflate(const std::string& path) {
  const auto deltas = TensorsAt(path);
  ASSERT_FALSE(deltas.empty());
  const std::string& frame = deltas.begin()->second;
  std::string large = frame;
  // A frame header with 8 bytes of size, and no window: 1 byte of flags, 8 of
  // size; the bytes behind it don't matter.
  ASSERT_GT(frame.size(), 13);
  large.replace(4, 9, std::string("\xe0\0\0\0\0\0\0\0\x10", 9));
  Replace(path, frame, large);
}

// Six versions: a whole one, two deltas, a whole one and two deltas.
TEST_F(ReceiverTest, FallsBackToTheNewestVersionThatIsWhole) {
  SKIP_WITHOUT_PYTHON();
  constexpr char kFile[] = "/model-00001-of-00001.safetensors";
  constexpr char kManifest[] = "/manifest.json";
  const auto publish_six = [this](std::vector<std::string>* kernels) {
    Publisher::Options options = Options();
    options.full_every = 3;
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
    for (int i = 0; i < 6; ++i) {
      ASSERT_OK(PublishNext(publisher, 50));
      if (kernels != nullptr) kernels->push_back(KernelBytes());
    }
  };
  std::vector<std::string> kernels;
  publish_six(&kernels);
  const std::string ours = root_ + "/ours";
  const std::string theirs = root_ + "/theirs";
  Move(Out(), ours);
  model_.run_id = "another";
  model_.kernel[0] = -1;
  publish_six(nullptr);
  Move(Out(), theirs);
  const std::string v4 = Out("weight_v000004");
  const std::string v5 = Out("weight_v000005");
  const std::string v6 = Out("weight_v000006");
  const std::string v7 = Out("weight_v000007");
  struct Case {
    std::string name;
    std::function<void()> harm;
    int received;  // 0: none
    std::string reason;
  };
  const Case cases[] = {
      {"whole", [&] {}, 6, ""},
      {"missing delta", [&] { fs::remove_all(v5); }, 4, "version 6"},
      {"missing whole version", [&] { fs::remove_all(v4); }, 3, "version 5"},
      {"truncated delta",
       [&] { fs::resize_file(v6 + kFile, fs::file_size(v6 + kFile) - 1); }, 5,
       "bytes"},
      {"truncated whole version", [&] { fs::resize_file(v4 + kFile, 100); }, 3,
       "100 of"},
      {"altered whole version",
       [&] {
         std::fstream file(v4 + kFile);
         file.seekp(5000);
         file.put('x');
       },
       3, "wrong bytes of dense/kernel"},
      {"altered manifest",
       [&] { Replace(v6 + kManifest, "[2000,4]", "[4000,2]"); }, 5,
       "manifest is damaged"},
      {"missing manifest", [&] { fs::remove(v6 + kManifest); }, 5,
       "manifest.json"},
      {"duplicated delta", [&] { fs::copy(v6, v7); }, 6, "is of version 6"},
      {"duplicated delta under another number",
       [&] {
         fs::copy(v6, v7);
         Replace(v7 + kManifest, "\"version\": 6", "\"version\": 7");
       },
       6, "another state"},
      {"swapped versions", [&] { Swap(v5, v6); }, 4, "is of version 5"},
      {"swapped files", [&] { Swap(v5 + kFile, v6 + kFile); }, 4, "version 6"},
      {"swapped manifests", [&] { Swap(v5 + kManifest, v6 + kManifest); }, 4,
       "is of version 5"},
      {"delta of another run",
       [&] {
         fs::remove_all(v6);
         fs::copy(theirs + "/weight_v000006", v6);
       },
       5, "another state"},
      {"frame that says that it is large", [&] { Inflate(v6 + kFile); }, 5,
       "for a tensor of 32000"},
      {"manifest with a list of files",
       [&] {
         const std::string text = TextOf(v6 + kManifest);
         const size_t begin = text.find("{", text.find("\"files\""));
         const size_t end = text.find("}", begin) + 1;
         Replace(v6 + kManifest, text.substr(begin, end - begin), "[]");
       },
       5, "version 6"},
      {"no whole version",
       [&] {
         fs::remove_all(v4);
         fs::remove_all(Out("weight_v000001"));
       },
       0, "has no version that can be rebuilt"}};
  for (const Case& harmed : cases) {
    SCOPED_TRACE(harmed.name);
    fs::remove_all(Out());
    fs::copy(ours, Out(), fs::copy_options::recursive);
    harmed.harm();
    const Received received = Receive();
    EXPECT_THAT(received.errors, HasSubstr(harmed.reason));
    EXPECT_EQ(received.code, harmed.received == 0 ? 1 : 0) << received.errors;
    if (received.code != 0) continue;
    EXPECT_THAT(received.output,
                HasSubstr(absl::StrCat("version ", harmed.received, ": ")));
    EXPECT_EQ(received.tensors.at("dense/kernel"),
              kernels[harmed.received - 1]);
  }
}

// What was listed is gone when its turn comes, as newer ones have replaced it.
TEST_F(ReceiverTest, ListsAgainWhatWasReplacedMeanwhile) {
  SKIP_WITHOUT_PYTHON();
  Publisher::Options options = Options();
  options.full_every = 1;
  options.max_to_keep = 1;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  for (int i = 0; i < 2; ++i) ASSERT_OK(PublishNext(publisher, 5));
  const std::string path = root_ + "/received.safetensors";
  const CompletedProcess run = RunPython(
      absl::StrCat("import os\n"
                   "listings = [['weight_v000001']]\n"
                   "real = os.listdir\n"
                   "os.listdir = lambda path: listings.pop() if listings else "
                   "real(path)\n",
                   TextOf("docs/examples/receiver/receive.py")),
      {Out(), path});
  ASSERT_EQ(run.end.code(), 0) << run.standard_error;
  EXPECT_THAT(run.standard_output, HasSubstr("version 2: "));
  EXPECT_EQ(TensorsAt(path).at("dense/kernel"), KernelBytes());
}

}  // namespace
}  // namespace parasol
