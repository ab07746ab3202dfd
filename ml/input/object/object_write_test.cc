#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/testing/s3_server.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Larger than what is sent in one request.
constexpr size_t kLarge = 25 << 20;

class ObjectWriteTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = std::make_unique<S3Server>("write_server");
    const auto uri = ParseObjectUri(server_->Uri("run"));
    ASSERT_OK(uri.status());
    auto store = ObjectStore::Open(*uri, clock_);
    ASSERT_OK(store.status());
    store_ = *std::move(store);
  }

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

  // A clock on which pauses take no time.
  class QuickClock final : public SimulatedClock {
   public:
    bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                          absl::Duration timeout) override {
      Advance(timeout);
      return condition.Eval();
    }
  };
  QuickClock clock_;
  std::unique_ptr<S3Server> server_;
  std::shared_ptr<const ObjectStore> store_;
};

TEST_F(ObjectWriteTest, ObjectsAreWrittenReplacedListedAndRemoved) {
  ASSERT_OK(Write("run/a", "first"));
  ASSERT_OK(Write("run/a", "second"));
  ASSERT_OK(Write("run/deep/down/empty", ""));
  ASSERT_OK(Write("run/ü b%20c", "odd"));
  EXPECT_EQ(Stored("run/a"), "second");
  EXPECT_EQ(Stored("run/deep/down/empty"), "");
  EXPECT_EQ(Stored("run/ü b%20c"), "odd");
  const auto shallow = store_->List("b/run");
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

TEST_F(ObjectWriteTest, ALargeObjectTravelsInPartsAndIsThereAtOnce) {
  std::string bytes(kLarge, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 24);
  }
  // Its parts are tried again by themselves.
  server_->SetFaults(
      {R"({"request": "PUT /b/run/large", "times": 2, "skip": 1, "do": "503"})"});
  ASSERT_OK(Write("run/large", bytes));
  EXPECT_TRUE(Stored("run/large") == bytes);
  EXPECT_THAT(server_->Requests("POST /b/run/large"), SizeIs(2));
  EXPECT_THAT(server_->Requests("PUT /b/run/large"), SizeIs(5));
}

TEST_F(ObjectWriteTest, AnUploadThatFailsLeavesNothing) {
  const std::string bytes(kLarge, 'x');
  server_->SetFaults(
      {R"({"request": "PUT /b/run/large", "times": -1, "do": "403"})"});
  EXPECT_THAT(Write("run/large", bytes),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("s3://b/run/large"),
                             HasSubstr("write it (AWS_ACCESS_KEY_ID"))));
  EXPECT_THAT(server_->Requests("DELETE /b/run/large"), SizeIs(1))
      << "of the parts";
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/large")));
}

TEST_F(ObjectWriteTest, WhatMayPassIsTriedAgain) {
  for (const std::string fault :
       {R"({"request": "PUT /b/.*", "times": 2, "do": "503"})",
        R"({"request": "PUT /b/.*", "times": 6, "do": "500"})",
        R"({"request": "PUT /b/.*", "times": 1, "do": "lost"})",
        R"({"request": "(PUT|DELETE) /b/.*", "times": 1, "do": "lost"})",
        R"({"request": "DELETE /b/.*", "times": 7, "do": "503"})"}) {
    SCOPED_TRACE(fault);
    server_->SetFaults({fault});
    EXPECT_OK(Write("run/a", fault));
    EXPECT_EQ(Stored("run/a"), fault);
    EXPECT_OK(store_->Remove("b/run/a"));
    EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/a")));
  }
}

// Who writes it may have lost the right to after the first request.
TEST_F(ObjectWriteTest, OneAttemptIsOneRequest) {
  server_->SetFaults(
      {R"({"request": "PUT /b/run/once", "times": 1, "do": "503"})"});
  EXPECT_THAT(store_->WriteOnce("b/run/once", SourceOf("x")),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(server_->Requests("PUT /b/run/once"), SizeIs(1));
  EXPECT_FALSE(std::filesystem::exists(server_->PathOf("run/once")));
  EXPECT_OK(store_->WriteOnce("b/run/once", SourceOf("x")));
  EXPECT_EQ(Stored("run/once"), "x");
}

TEST_F(ObjectWriteTest, ErrorsNameTheObjectAndWhatToDo) {
  server_->SetFaults(
      {R"({"request": "PUT /b/run/no", "times": -1, "do": "503"})"});
  EXPECT_THAT(Write("run/no", "x"),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("s3://b/run/no"),
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

}  // namespace
}  // namespace parasol
