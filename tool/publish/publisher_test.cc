#include "tool/publish/publisher.h"

#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "base/testing/python.h"
#include "cluster/checkpoint/model/testing/model_checkpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "storage/durable_file.h"
#include "storage/tensor_files/safetensors_reader.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

std::string TextOf(const std::string& path) {
  return ReadFile(path, size_t{1} << 30).value_or("");
}

// The bytes of a safetensors file's tensors.
std::map<std::string, std::string> TensorsAt(const std::string& path) {
  std::map<std::string, std::string> tensors;
  const auto reader = OpenSafetensors(path);
  EXPECT_OK(reader);
  if (!reader.ok()) return tensors;
  for (size_t i = 0; i < (*reader)->tensors().size(); ++i) {
    const TensorInfo& info = (*reader)->tensors()[i];
    std::string& bytes = tensors[info.name];
    bytes.resize(CountBytes(info).value_or(0));
    EXPECT_OK((*reader)->Read(i, 0, absl::MakeSpan(bytes)));
  }
  return tensors;
}

class PublisherTest : public ::testing::Test {
 protected:
  PublisherTest() : root_(EmptyTestDirectory()) {
    model_.step = 100;
    model_.shape = {2000, 4};
    model_.kernel.resize(8000);
    for (size_t i = 0; i < 8000; ++i) {
      model_.kernel[i] = 1 + 0.37f * static_cast<float>(i);
    }
    model_.m = model_.v = std::vector<float>(8000, 0);
  }

  std::string Out(const std::string& name = "") const {
    return absl::StrCat(root_, "/out", name.empty() ? "" : "/", name);
  }

  Publisher::Options Options() const { return {.directory = Out()}; }

  // Publishes the model's next step, in which `changed` of the kernel's
  // elements differ.
  absl::StatusOr<Publication> PublishNext(Publisher& publisher, int changed) {
    model_.step += 10;
    for (int i = 0; i < changed; ++i) {
      model_.kernel[(i * 7919 + model_.step) % 8000] *= 1.001f;
    }
    return Publish(publisher);
  }
  absl::StatusOr<Publication> Publish(Publisher& publisher) {
    fs::remove_all(model_.PathIn(root_ + "/ckpt"));
    RETURN_IF_ERROR(model_.Write(root_ + "/ckpt"));
    return publisher.Publish(model_.PathIn(root_ + "/ckpt"));
  }

  // What the receiver in Python rebuilds of the directory, and says.
  struct Received {
    std::map<std::string, std::string> tensors = {};
    std::string output = {};
    std::string errors = {};
    int code = 0;
  };
  Received Receive() {
    const std::string path = root_ + "/received.safetensors";
    fs::remove(path);
    const CompletedProcess run =
        RunPython(TextOf("docs/examples/receiver/receive.py"), {Out(), path});
    Received received = {.output = run.standard_output,
                         .errors = run.standard_error,
                         .code = run.end.code()};
    if (run.end.code() == 0) received.tensors = TensorsAt(path);
    return received;
  }

  std::string KernelBytes() const {
    return std::string(reinterpret_cast<const char*>(model_.kernel.data()),
                       model_.kernel.size() * sizeof(float));
  }

  const std::string root_;
  ModelCheckpoint model_;
};

#define SKIP_WITHOUT_PYTHON()                                                  \
  if (const std::string why = PythonLacks("numpy, zstandard"); !why.empty()) { \
    GTEST_SKIP() << why;                                                       \
  }

TEST_F(PublisherTest, FirstVersionIsWholeWithAnIndex) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK_AND_ASSIGN(const Publication publication,
                       PublishNext(publisher, 0));
  EXPECT_EQ(publication.version.format, VersionFormat::kFull);
  const auto tensors =
      TensorsAt(Out("weight_v000001/model-00001-of-00001.safetensors"));
  EXPECT_EQ(tensors.at("dense/kernel"), KernelBytes());
  EXPECT_EQ(tensors.size(), 3);  // and the table's ids and rows
  const Json index =
      Json::parse(TextOf(Out("weight_v000001/model.safetensors.index.json")));
  EXPECT_EQ(index["metadata"]["total_size"], 4 * 8000 + 2 * (8 + 8));
  EXPECT_FALSE(index["metadata"].contains("delta_encoding"));
  EXPECT_EQ(index["weight_map"]["users/rows"],
            "model-00001-of-00001.safetensors");
  const Json manifest =
      Json::parse(TextOf(Out("weight_v000001/manifest.json")));
  EXPECT_EQ(manifest["step"], 110);
  EXPECT_EQ(manifest["base_version"], nullptr);
  EXPECT_EQ(manifest["format"], "full");
}

TEST_F(PublisherTest, SmallestFormIsWritten) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  EXPECT_OK(PublishNext(publisher, 0));
  uint64_t before = 0;
  std::set<VersionFormat> formats;
  for (const int changed : {0, 1, 20, 400, 3000}) {
    ASSERT_OK_AND_ASSIGN(const Publication publication,
                         PublishNext(publisher, changed));
    EXPECT_EQ(publication.version.base, publication.version.version - 1);
    EXPECT_GT(publication.file_bytes, before);
    EXPECT_LT(publication.file_bytes, publication.state_bytes);
    before = publication.file_bytes;
    formats.insert(publication.version.format);
    const Json index = Json::parse(TextOf(
        absl::StrCat(Out(), "/", VersionName(publication.version.version),
                     "/model.safetensors.index.json")));
    EXPECT_EQ(index["metadata"]["delta_encoding"],
              std::string(NameOf(publication.version.format)));
    EXPECT_EQ(index["metadata"]["base_version"],
              absl::StrCat("00000", publication.version.version - 1));
    EXPECT_EQ(index["weight_map"].size(), changed > 0 ? 1 : 0);
  }
  EXPECT_EQ(formats.size(), 2);
  // All values are new, in a way that does not compress.
  model_.users = {{8, {0.3f, 0.7f, 0, 0, 0, 0}}, {9, {0.1f, 2.3f, 0, 0, 0, 0}}};
  std::mt19937 bits(1);
  for (float& value : model_.kernel) {
    value = std::bit_cast<float>(static_cast<uint32_t>(bits()));
  }
  ASSERT_OK_AND_ASSIGN(const Publication whole, PublishNext(publisher, 0));
  EXPECT_EQ(whole.version.format, VersionFormat::kFull);
}

TEST_F(PublisherTest, EveryFewVersionsOneIsWhole) {
  Publisher::Options options = Options();
  options.full_every = 3;
  std::vector<bool> whole;
  for (int i = 0; i < 7; ++i) {
    // Each time another process.
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
    ASSERT_OK_AND_ASSIGN(const Publication publication,
                         PublishNext(publisher, 5));
    EXPECT_EQ(publication.version.version, i + 1);
    whole.push_back(!publication.version.base);
  }
  EXPECT_THAT(whole, ElementsAre(true, false, false, true, false, false, true));
}

TEST_F(PublisherTest, OldVersionsGoButNotThoseThatOthersBuildOn) {
  Publisher::Options options = Options();
  options.full_every = 3;
  options.max_to_keep = 2;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  for (int i = 0; i < 6; ++i) ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_FALSE(fs::exists(Out("weight_v000003")));
  EXPECT_TRUE(fs::exists(Out("weight_v000004")));
  EXPECT_TRUE(fs::exists(Out("weight_v000006")));
  ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_TRUE(fs::exists(Out("weight_v000004")));
  ASSERT_OK(PublishNext(publisher, 5));
  EXPECT_FALSE(fs::exists(Out("weight_v000006")));
  EXPECT_TRUE(fs::exists(Out("weight_v000007")));
}

TEST_F(PublisherTest, TableWithMoreRowsMakesAVersionWhole) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  model_.users[9] = {1, 2, 0, 0, 0, 0};
  ASSERT_OK_AND_ASSIGN(const Publication publication,
                       PublishNext(publisher, 1));
  EXPECT_EQ(publication.version.format, VersionFormat::kFull);
  model_.users[9][0] = 5;
  ASSERT_OK_AND_ASSIGN(const Publication next, PublishNext(publisher, 1));
  EXPECT_NE(next.version.format, VersionFormat::kFull);
}

TEST_F(PublisherTest, WhatIsThereAlreadyIsNotWrittenAgain) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  ASSERT_OK(PublishNext(publisher, 3));
  ASSERT_OK_AND_ASSIGN(const Publication again, Publish(publisher));
  EXPECT_TRUE(again.was_there);
  EXPECT_FALSE(fs::exists(Out("weight_v000003")));
  // Only the newest version's state stays.
  EXPECT_EQ(std::distance(fs::directory_iterator(Out(".publisher")),
                          fs::directory_iterator()),
            1);
  model_.kernel[0] = 17;
  EXPECT_THAT(Publish(publisher).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("other bytes")));
}

TEST_F(PublisherTest, WrongCheckpointsAndDirectoriesAreRefused) {
  {
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    model_.step -= 20;
    EXPECT_THAT(Publish(publisher).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("weight_v000001: is of step")));
    model_.step += 100;
    model_.run_id = "another";
    EXPECT_THAT(
        Publish(publisher).status(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run another")));
    EXPECT_THAT(
        Publisher::Open(Options()).status(),
        StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another process")));
  }
  Publisher::Options options = Options();
  options.type = ElementType::kBfloat16;
  EXPECT_THAT(Publisher::Open(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--dtype=float32")));
  EXPECT_FALSE(fs::exists(Out("weight_v000002")));
}

TEST_F(PublisherTest, DamagedNewestManifestIsSaid) {
  {
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
  }
  const std::string path = Out("weight_v000001/manifest.json");
  const std::string text = TextOf(path);
  std::string other = text;
  other.replace(other.find("float32\",\"shape"), 7, "float64");
  for (const std::string& damaged :
       {text.substr(0, text.size() / 2), std::string("[]"), std::string("{}"),
        other}) {
    std::ofstream(path) << damaged;
    EXPECT_THAT(Publisher::Open(Options()).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(path)));
  }
  fs::remove(path);
  EXPECT_THAT(Publisher::Open(Options()).status(),
              StatusIs(absl::StatusCode::kDataLoss));
}

// A base that is gone, or has other bytes, makes the next version whole.
TEST_F(PublisherTest, DeltaIsWrittenOnlyOnTheNewestVersionsBytes) {
  const std::map<std::string, std::function<void()>> harms = {
      {"state gone",
       [&] { fs::remove(Out(".publisher/weight_v000002.safetensors")); }},
      {"state altered",
       [&] {
         std::fstream file(Out(".publisher/weight_v000002.safetensors"));
         file.seekp(-9, std::ios::end);
         file << "x";
       }},
      {"version gone", [&] { fs::remove_all(Out("weight_v000001")); }},
      {"version cut", [&] {
         fs::resize_file(Out("weight_v000001/model-00001-of-00001.safetensors"),
                         1000);
       }}};
  for (const auto& [what, harm] : harms) {
    SCOPED_TRACE(what);
    fs::remove_all(Out());
    ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
    ASSERT_OK(PublishNext(publisher, 0));
    ASSERT_OK(PublishNext(publisher, 3));
    harm();
    ASSERT_OK_AND_ASSIGN(const Publication next, PublishNext(publisher, 3));
    EXPECT_EQ(next.version.format, VersionFormat::kFull);
    EXPECT_EQ(next.version.version, 3);
  }
}

// Limits the size of files that this process writes, as a full disk does.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST_F(PublisherTest, FullDiskPublishesNothingAndLeavesNothing) {
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(PublishNext(publisher, 0));
  model_.step += 10;
  ASSERT_OK(model_.Write(root_ + "/ckpt"));
  {
    const FileSizeLimit full(20000);
    EXPECT_THAT(
        publisher.Publish(model_.PathIn(root_ + "/ckpt")).status(),
        StatusIs(absl::StatusCode::kResourceExhausted,
                 AllOf(HasSubstr(Out(".publisher")), HasSubstr("make room"))));
  }
  EXPECT_FALSE(fs::exists(Out("weight_v000002")));
  EXPECT_TRUE(fs::is_empty(Out(".publisher")));
  ASSERT_OK_AND_ASSIGN(const Publication next, Publish(publisher));
  EXPECT_EQ(next.version.version, 2);
}

// The manifest is the last file, and the largest of a small model.
TEST_F(PublisherTest, NoVersionIsThereBeforeItsManifest) {
  model_ = ModelCheckpoint();
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(Options()));
  ASSERT_OK(model_.Write(root_ + "/ckpt"));
  const std::string checkpoint = model_.PathIn(root_ + "/ckpt");
  {
    const FileSizeLimit full(700);
    EXPECT_THAT(publisher.Publish(checkpoint).status(),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("manifest.json")));
  }
  EXPECT_FALSE(fs::exists(Out("weight_v000001")));
  EXPECT_TRUE(fs::is_empty(Out(".publisher")));
  EXPECT_OK(publisher.Publish(checkpoint));
}

TEST_F(PublisherTest, ReceiverRebuildsEveryByte) {
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

// The bits of numpy's own rounding: to nearest, ties to even.
TEST_F(PublisherTest, Bfloat16IsRoundedToNearest) {
  SKIP_WITHOUT_PYTHON();
  if (!PythonLacks("ml_dtypes").empty()) GTEST_SKIP() << "no ml_dtypes";
  model_.kernel[0] = std::bit_cast<float>(0x3f808000);  // a tie
  model_.kernel[1] = std::bit_cast<float>(0x3f818000);
  model_.kernel[2] = std::bit_cast<float>(0x7f800000);
  model_.kernel[3] = std::bit_cast<float>(0x00000001);
  Publisher::Options options = Options();
  options.type = ElementType::kBfloat16;
  ASSERT_OK_AND_ASSIGN(Publisher publisher, Publisher::Open(options));
  ASSERT_OK(PublishNext(publisher, 0));
  ASSERT_OK(PublishNext(publisher, 500));
  const Received received = Receive();
  ASSERT_EQ(received.code, 0) << received.errors;
  std::ofstream(root_ + "/kernel") << KernelBytes();
  const CompletedProcess rounded = RunPython(
      "import ml_dtypes, numpy, sys\n"
      "values = numpy.fromfile(sys.argv[1], '<f4')\n"
      "values.astype(ml_dtypes.bfloat16).tofile(sys.argv[1])\n",
      {root_ + "/kernel"});
  ASSERT_EQ(rounded.end.code(), 0) << rounded.standard_error;
  EXPECT_EQ(received.tensors.at("dense/kernel"), TextOf(root_ + "/kernel"));
  EXPECT_EQ(received.tensors.at("users/ids").size(), 2 * sizeof(uint64_t));
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

// Six versions: a whole one, two deltas, a whole one and two deltas.
TEST_F(PublisherTest, ReceiverFallsBackToTheNewestVersionThatIsWhole) {
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

}  // namespace
}  // namespace parasol
