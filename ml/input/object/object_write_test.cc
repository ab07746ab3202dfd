#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Larger than what is sent in one request.
constexpr size_t kLarge = 25 << 20;

// A clock on which pauses take no time.
class QuickClock final : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                        absl::Duration timeout) override {
    Advance(timeout);
    return condition.Eval();
  }
};

class ObjectWriteTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "write_server");
    const auto uri = ParseObjectUri(server_->Uri("run"));
    ASSERT_OK(uri.status());
    auto store = ObjectStore::Open(*uri, clock_);
    ASSERT_OK(store.status());
    store_ = *std::move(store);
  }

  bool IsS3() const { return GetParam() == "S3"; }

  absl::Status Write(const std::string& key, const std::string& bytes) const {
    return store_->Write(absl::StrCat("b/", key), SourceOf(bytes));
  }
  static ObjectStore::Source SourceOf(const std::string& bytes) {
    return {.bytes = bytes.size(),
            .read = [&bytes](uint64_t offset, absl::Span<char> out) {
              std::copy_n(bytes.data() + offset, out.size(), out.data());
              return absl::OkStatus();
            }};
  }
  std::string Stored(const std::string& key) const {
    std::string bytes;
    const auto object = store_->OpenObject(absl::StrCat("b/", key));
    if (!object.ok()) return object.status().ToString();
    bytes.resize((*object)->bytes());
    if (bytes.empty()) return bytes;
    const absl::Status read = (*object)->Read(0, absl::MakeSpan(bytes));
    return read.ok() ? bytes : read.ToString();
  }

  QuickClock clock_;
  std::unique_ptr<ObjectServer> server_;
  std::shared_ptr<const ObjectStore> store_;
};

TEST_P(ObjectWriteTest, ObjectsAreWrittenReplacedListedAndRemoved) {
  ASSERT_OK(Write("run/a", "first"));
  ASSERT_OK(Write("run/a", "second"));
  ASSERT_OK(Write("run/deep/down/empty", ""));
  ASSERT_OK(Write("run/ü b%20c", "odd"));
  EXPECT_EQ(Stored("run/a"), "second");
  EXPECT_EQ(Stored("run/deep/down/empty"), "");
  EXPECT_EQ(Stored("run/ü b%20c"), "odd");
  const auto shallow = store_->List("b/run", ObjectStore::Depth::kFolder);
  ASSERT_OK(shallow.status());
  EXPECT_THAT(*shallow, SizeIs(3));
  const auto all = store_->List("b/run", ObjectStore::Depth::kAll);
  ASSERT_OK(all.status());
  EXPECT_EQ(std::count_if(all->begin(), all->end(),
                          [](const ObjectEntry& e) { return !e.is_folder; }),
            3);
  for (int i = 0; i < 2; ++i) {
    EXPECT_OK(store_->Remove("b/run/a"));
    EXPECT_OK(store_->RemoveFolder("b/run/deep"));
  }
  EXPECT_THAT(Stored("run/a"), HasSubstr("NOT_FOUND"));
  const auto left = store_->List("b/run", ObjectStore::Depth::kAll);
  ASSERT_OK(left.status());
  EXPECT_THAT(*left, SizeIs(1));
}

TEST_P(ObjectWriteTest, ALargeObjectTravelsInPartsAndIsThereAtOnce) {
  std::string bytes(kLarge, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  }
  // Its parts are tried again by themselves.
  server_->SetFaults(
      {server_->Fault("PUT /b/run/large", "503", 2, /*skip=*/1)});
  ASSERT_OK(Write("run/large", bytes));
  EXPECT_TRUE(Stored("run/large") == bytes);
  // One begins it, and with S3 one ends it.
  EXPECT_THAT(server_->Requests("POST /b/run/large"), SizeIs(IsS3() ? 2 : 1));
  EXPECT_THAT(server_->Requests("PUT /b/run/large"), SizeIs(5));
}

TEST_P(ObjectWriteTest, AnUploadThatFailsLeavesNothing) {
  const std::string bytes(kLarge, 'x');
  server_->SetFaults(
      {R"({"request": "PUT /b/run/large", "times": -1, "do": "403"})"});
  EXPECT_THAT(Write("run/large", bytes),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr(server_->Name("run/large")),
                             HasSubstr(server_->Credentials()))));
  EXPECT_THAT(server_->Requests("DELETE /b/run/large"), SizeIs(IsS3() ? 1 : 0))
      << "of the parts";
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/large")));
}

TEST_P(ObjectWriteTest, WhatMayPassIsTriedAgain) {
  for (const std::string& fault : {server_->Fault("PUT /b/.*", "503", 2),
                                   server_->Fault("PUT /b/.*", "500", 6),
                                   server_->Fault("POST /b/.*", "lost"),
                                   server_->Fault("PUT /b/.*", "lost"),
                                   server_->Fault("(PUT|DELETE) /b/.*", "lost"),
                                   server_->Fault("DELETE /b/.*", "503", 7)}) {
    SCOPED_TRACE(fault);
    server_->SetFaults({fault});
    EXPECT_OK(Write("run/a", fault));
    EXPECT_EQ(Stored("run/a"), fault);
    EXPECT_OK(store_->Remove("b/run/a"));
    EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/a")));
  }
}

// Who writes it may have lost the right to after the first request.
TEST_P(ObjectWriteTest, OneAttemptIsOneRequest) {
  server_->SetFaults({server_->Fault("PUT /b/run/once", "503")});
  EXPECT_THAT(store_->WriteOnce("b/run/once", SourceOf("x")),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_->Requests("PUT /b/run/once"), SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/once")));
  EXPECT_OK(store_->WriteOnce("b/run/once", SourceOf("x")));
  EXPECT_EQ(Stored("run/once"), "x");
}

TEST_P(ObjectWriteTest, ErrorsNameTheObjectAndWhatToDo) {
  // Google's library takes a second for what it tries again itself.
  server_->SetFaults(
      {server_->Fault("PUT /b/run/no", IsS3() ? "503" : "412", -1)});
  EXPECT_THAT(Write("run/no", "x"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(server_->Name("run/no")),
                             HasSubstr("given up after 8 attempts"))));
  EXPECT_THAT(store_->Write("none/run/a", SourceOf("x")),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("no such object or bucket")));
  const ObjectStore::Source broken = {
      .bytes = 3, .read = [](uint64_t, absl::Span<char>) {
        return absl::DataLossError("the file has been cut");
      }};
  EXPECT_THAT(store_->Write("b/run/broken", broken),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("been cut")));
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/broken")));
}

// What was sent before is no object, now or when the process ends.
TEST_P(ObjectWriteTest, WhatCantBeReadToItsEndIsNotThere) {
  ASSERT_OK(Write("run/large", "the one before"));
  const ObjectStore::Source broken = {
      .bytes = kLarge, .read = [](uint64_t offset, absl::Span<char> out) {
        std::fill(out.begin(), out.end(), 'x');
        return offset < kLarge / 2 ? absl::OkStatus()
                                   : absl::DataLossError("it has been cut");
      }};
  EXPECT_THAT(store_->Write("b/run/large", broken),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("been cut")));
  EXPECT_THAT(server_->Requests("PUT /b/run/large"), Not(IsEmpty()));
  EXPECT_EQ(Stored("run/large"), "the one before");
}

INSTANTIATE_TEST_SUITE_P(Servers, ObjectWriteTest, ObjectServerKinds(),
                         ObjectServerName);

// What Google's store has and S3 has not.
class GoogleStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = std::make_unique<GcsServer>("google");
    ASSERT_OK_AND_ASSIGN(store_, Open(server_->Uri("x")));
  }

  absl::StatusOr<std::shared_ptr<const ObjectStore>> Open(
      const std::string& uri) {
    ASSIGN_OR_RETURN(const ObjectUri parts, ParseObjectUri(uri));
    return ObjectStore::Open(parts, clock_);
  }

  QuickClock clock_;
  std::unique_ptr<GcsServer> server_;
  std::shared_ptr<const ObjectStore> store_;
};

// Arrow's own reader says "Cannot read from closed file", and looks for it
// without a lock.
TEST_F(GoogleStoreTest, ThreadsBeginToReadAnObjectTogether) {
  const std::string bytes(4 << 20, 'y');
  server_->Put("x", bytes);
  ASSERT_OK_AND_ASSIGN(const auto object, store_->OpenObject("b/x"));
  server_->SetFaults({server_->Fault("GET /b/x", "503")});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      std::string out(1000, '\0');
      const absl::Status read =
          object->Read(uint64_t{1000} * i, absl::MakeSpan(out));
      if (!read.ok() || out != bytes.substr(0, 1000)) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  // The library begins with all of it, and is to leave that at once.
  EXPECT_THAT(server_->Requests("GET /b/x bytes=4194303- "), SizeIs(1));
}

TEST_F(GoogleStoreTest, AnObjectOfWhichOnlyFactsChangeIsTheSame) {
  server_->Put("x", "bytes");
  ASSERT_OK_AND_ASSIGN(const auto object, store_->OpenObject("b/x"));
  server_->SetFaults({server_->Fault("HEAD /b/x", "touched", -1)});
  EXPECT_OK(object->CheckIsSame());
}

TEST_F(GoogleStoreTest, AListThatFailsIsNotTakenForNone) {
  server_->Put("d/x", "bytes");
  server_->SetFaults({server_->Fault("GET /b", "403", -1)});
  EXPECT_THAT(store_->Find("b/d"), StatusIs(absl::StatusCode::kPermissionDenied,
                                            HasSubstr(server_->Name("d"))));
  server_->SetFaults({});
  ASSERT_OK_AND_ASSIGN(const ObjectEntry found, store_->Find("b/d"));
  EXPECT_TRUE(found.is_folder);
}

TEST_F(GoogleStoreTest, AnUploadOfWhichTheStoreKeepsAPartGoesOnBehindIt) {
  server_->SetFaults({server_->Fault("PUT /b/x", "half", 1, /*skip=*/1)});
  std::string bytes(kLarge, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  }
  ASSERT_OK(store_->Write(
      "b/x", {.bytes = bytes.size(),
              .read = [&](uint64_t offset, absl::Span<char> out) {
                std::copy_n(bytes.data() + offset, out.size(), out.data());
                return absl::OkStatus();
              }}));
  std::ifstream file(server_->PathOf("x"), std::ios::binary);
  std::ostringstream stored;
  stored << file.rdbuf();
  EXPECT_TRUE(stored.str() == bytes);
}

TEST_F(GoogleStoreTest, AnUploadThatTheStoreForgetsBeginsAnew) {
  server_->SetFaults({server_->Fault("PUT /b/x", "forget", 1, /*skip=*/1)});
  const std::string bytes(kLarge, 'x');
  ASSERT_OK(store_->Write(
      "b/x", {.bytes = bytes.size(),
              .read = [&](uint64_t offset, absl::Span<char> out) {
                std::copy_n(bytes.data() + offset, out.size(), out.data());
                return absl::OkStatus();
              }}));
  EXPECT_EQ(std::filesystem::file_size(server_->PathOf("x")), bytes.size());
  EXPECT_THAT(server_->Requests("POST /b/x"), SizeIs(2));
}

// Of folders there is nothing in the store but the names of objects.
TEST_F(GoogleStoreTest, FoldersAreRemovedWithWhatIsInThem) {
  for (const char* key : {"d/x", "d/e/y", "d/f/g/z", "dd"}) {
    server_->Put(key, key);
  }
  server_->SetFaults({server_->Fault("DELETE .*", "lost", 1)});
  EXPECT_OK(store_->RemoveFolder("b/d"));
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("d/x")));
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("d/f/g/z")));
  EXPECT_TRUE(std::filesystem::exists(server_->PathOf("dd")));
  server_->Put("d/x", "x");
  server_->SetFaults({server_->Fault("DELETE .*/x", "404", -1)});
  // The one whose answer says that it is gone, is it?
  EXPECT_THAT(store_->RemoveFolder("b/d"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("b/d/x")));
}

TEST_F(GoogleStoreTest, CredentialsThatGiveNoTokenAreNamed) {
  // The library keeps a token; another store has another process's.
  const std::string other = server_->Uri("x") + "&project_id=p1";
  setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none/key.json", 1);
  ASSERT_OK_AND_ASSIGN(const auto none, Open(other));
  EXPECT_THAT(
      none->Find("b/x"),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr("gs://b/x"),
                     HasSubstr("no access token: Cannot open credentials file "
                               "/none/key.json"),
                     HasSubstr(server_->Credentials()))));
  const absl::Status refused = Open("gs://anonymous@b/x?" + server_->Options())
                                   .value()
                                   ->Find("b/x")
                                   .status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kPermissionDenied,
                                HasSubstr("Anonymous caller does not have")));
}

// What the libraries of both share ends before they do, whichever was first.
TEST(ObjectServersDeathTest, AProcessThatUsesBothStoresEndsInPeace) {
  if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
    GTEST_SKIP() << lacks;
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto use_both = [] {
    for (const std::string kind : {"Google", "S3"}) {
      const auto server = StartObjectServer(kind, "both");
      const auto uri = ParseObjectUri(server->Put("x", "x"));
      EXPECT_OK((*ObjectStore::Open(*uri))->Find("b/x").status());
    }
    return 0;
  };
  EXPECT_EXIT(std::exit(use_both()), testing::ExitedWithCode(0),
              Not(HasSubstr("FinalizeS3")));
}

}  // namespace
}  // namespace parasol
