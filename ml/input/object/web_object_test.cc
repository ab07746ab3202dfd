#include "ml/input/object/web_object.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/attempts.h"
#include "ml/input/object/find_objects.h"
#include "ml/input/object/object_cache.h"
#include "ml/input/web/testing/web_server.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr absl::StatusCode kPasses = absl::StatusCode::kUnavailable;
constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;
constexpr absl::StatusCode kLoss = absl::StatusCode::kDataLoss;

// A clock on which each wait is over at once.
class HastyClock final : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                        absl::Duration timeout) override {
    Advance(timeout);
    return condition.Eval();
  }
};

// Bytes of which each piece differs from all others.
std::string DrawnBytes(size_t size, uint64_t seed) {
  std::string bytes(size, '\0');
  for (char& c : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(seed >> 56);
  }
  return bytes;
}

// A fault of all requests for the file "x".
std::string FaultOfX(absl::string_view what, int times = -1, int skip = 0) {
  return absl::StrCat(R"({"request": "GET /x", "times": )", times,
                      R"(, "skip": )", skip, R"(, "do": ")", what, "}");
}

class WebObjectTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { shared_server_ = new WebServer("web_object"); }
  static void TearDownTestSuite() { delete shared_server_; }
  void SetUp() override {
    server_.SetFaults({});
    ASSERT_OK_AND_ASSIGN(client_,
                         WebClient::Create({.silence = absl::Seconds(1)}));
  }

  absl::StatusOr<std::shared_ptr<const StoredObject>> Open(
      const std::string& url) {
    return OpenWebObject(url, *client_, clock_);
  }

  static absl::StatusOr<std::string> ReadPart(const StoredObject& object,
                                              uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    const absl::Status read = object.Read(offset, absl::MakeSpan(bytes));
    if (!read.ok()) return read;
    return bytes;
  }

  // Returns all bytes, as several threads get them in pieces.
  static absl::StatusOr<std::string> ReadWhole(const StoredObject& object,
                                               size_t piece = 10000) {
    absl::Mutex mu;
    std::string bytes(object.bytes(), '\0');
    const absl::Status read =
        object.ReadAll(piece, 4, [&](uint64_t offset, absl::string_view some) {
          const absl::MutexLock lock(&mu);
          EXPECT_LE(offset + some.size(), bytes.size());
          std::copy(some.begin(), some.end(), bytes.begin() + offset);
          return absl::OkStatus();
        });
    if (!read.ok()) return read;
    return bytes;
  }

  // Returns the error of a file on which a fault has struck since it was
  // opened.
  absl::Status ErrorOfRead(absl::string_view fault) {
    server_.SetFaults({});
    const auto object = Open(server_.Put("x", DrawnBytes(50000, 7)));
    EXPECT_OK(object.status());
    if (!object.ok()) return object.status();
    server_.SetFaults({FaultOfX(fault)});
    return ReadPart(**object, 100, 30000).status();
  }

  static inline WebServer* shared_server_ = nullptr;
  const WebServer& server_ = *shared_server_;
  HastyClock clock_;
  std::unique_ptr<WebClient> client_;
};

TEST_F(WebObjectTest, BytesAreThoseOfTheFile) {
  const std::string bytes = DrawnBytes(100001, 1);
  const std::string url = server_.Put("x", bytes);
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  EXPECT_EQ(object->uri(), url);
  EXPECT_EQ(object->bytes(), bytes.size());
  EXPECT_TRUE(object->has_parts());
  EXPECT_TRUE(ReadWhole(*object).value() == bytes);
  EXPECT_OK(object->CheckIsSame());
  for (const auto& [offset, size] : std::vector<std::pair<size_t, size_t>>{
           {0, 1}, {100000, 1}, {12345, 54321}, {0, 100001}, {7, 0}}) {
    EXPECT_TRUE(ReadPart(*object, offset, size).value() ==
                bytes.substr(offset, size));
  }
}

TEST_F(WebObjectTest, AServerWithoutPartsIsReadFromTheStart) {
  const std::string bytes = DrawnBytes(300001, 2);
  const std::string url = server_.Put("x", bytes);
  server_.SetFaults({FaultOfX("whole\"")});
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  EXPECT_EQ(object->bytes(), bytes.size());
  EXPECT_FALSE(object->has_parts());
  server_.ForgetRequests();
  EXPECT_TRUE(ReadWhole(*object).value() == bytes);
  EXPECT_THAT(server_.Requests("GET /x"), SizeIs(1));
  EXPECT_OK(object->CheckIsSame());
  EXPECT_TRUE(ReadPart(*object, 12345, 200000).value() ==
              bytes.substr(12345, 200000));
  server_.SetFaults({FaultOfX("cut\"", 3), FaultOfX("whole\"")});
  EXPECT_TRUE(ReadWhole(*object).value() == bytes);
  server_.SetFaults({FaultOfX("cut\"")});
  EXPECT_THAT(ReadWhole(*object),
              StatusIs(kPasses, HasSubstr("given up after 8 attempts")));
}

TEST_F(WebObjectTest, EmptyFilesAreRead) {
  const std::string url = server_.Put("x", "");
  for (const char* fault : {"\"", "whole\"", "416\"", "unversioned\""}) {
    SCOPED_TRACE(fault);
    // The request without a range is answered.
    server_.SetFaults({FaultOfX(fault, fault[0] == '4' ? 1 : -1)});
    ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
    EXPECT_EQ(object->bytes(), 0);
    EXPECT_EQ(ReadWhole(*object).value(), "");
    EXPECT_OK(object->CheckIsSame());
  }
}

TEST_F(WebObjectTest, WhatPassesIsTriedAgainAndGoesOnWhereItWas) {
  const std::string bytes = DrawnBytes(64000, 3);
  const std::string url = server_.Put("x", bytes);
  for (const char* fault :
       {"500\"", "503\"", "429\"", "cut\"", "reset\"", "short\"", "long\"",
        "garbage\"", R"(chunks", "more": 5)", R"(chunks", "more": -1)",
        "shifted\"", "nowhere\"", R"(huge", "bytes": 99999999999)",
        R"(huge", "bytes": "x")", R"(hang", "seconds": 0)"}) {
    SCOPED_TRACE(fault);
    server_.SetFaults({FaultOfX(fault, 3, 1)});
    ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
    EXPECT_TRUE(ReadPart(*object, 10, 60000).value_or("none") ==
                bytes.substr(10, 60000));
    server_.SetFaults({FaultOfX(fault, 3)});
    EXPECT_OK(Open(url).status()) << "it is opened in spite of it, too";
  }
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  server_.SetFaults({FaultOfX("cut\"", 3)});
  server_.ForgetRequests();
  EXPECT_OK(ReadPart(*object, 0, 64000));
  EXPECT_THAT(server_.Requests("GET /x bytes=0-63999"), SizeIs(1));
  EXPECT_THAT(server_.Requests("GET /x bytes=32000-63999"), SizeIs(1));
  EXPECT_THAT(server_.Requests("GET /x bytes=48000-63999"), SizeIs(1));
  EXPECT_THAT(server_.Requests("GET /x bytes=56000-63999"), SizeIs(1));
}

TEST_F(WebObjectTest, WhatDoesNotPassIsGivenUpInOneLine) {
  for (const char* fault :
       {"503\"", "short\"", "long\"", "shifted\"", "nowhere\"", "garbage\"",
        R"(huge", "bytes": 99999999999)", "whole\""}) {
    EXPECT_THAT(ErrorOfRead(fault),
                StatusIs(kPasses, AllOf(HasSubstr(server_.Url("x: ")),
                                        HasSubstr("given up after 8 attempts"),
                                        Not(HasSubstr("\n")))))
        << fault;
  }
  for (const char* fault : {"401\"", "403\""}) {
    EXPECT_THAT(ErrorOfRead(fault),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr(server_.Url("x: "))));
  }
}

TEST_F(WebObjectTest, AFileThatHasChangedIsNeverMixedWithAnother) {
  for (const char* fault :
       {"etag\"", R"(total", "bytes": 50001)", "404\"", "410\""}) {
    EXPECT_THAT(ErrorOfRead(fault),
                StatusIs(kLoss, HasSubstr(server_.Url("x: "))))
        << fault;
  }
  server_.SetFaults({});
  const std::string url = server_.Put("x", DrawnBytes(50000, 4));
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  for (const size_t size : {50000, 60000, 40, 0}) {
    server_.Put("x", DrawnBytes(size, 5));
    EXPECT_THAT(ReadPart(*object, 100, 1000), StatusIs(kLoss, HasSubstr(url)));
    EXPECT_THAT(object->CheckIsSame(),
                StatusIs(kLoss, AllOf(HasSubstr("50000 bytes"),
                                      HasSubstr(absl::StrCat("now ", size)))));
  }
  std::filesystem::remove(server_.PathOf("x"));
  EXPECT_THAT(object->CheckIsSame(), StatusIs(kLoss, HasSubstr("is gone")));
}

TEST_F(WebObjectTest, AVersionIsAnETagOrATime) {
  const std::string url = server_.Put("x", DrawnBytes(50000, 6));
  const auto version = [&](const char* fault) {
    server_.SetFaults({FaultOfX(fault)});
    const auto object = Open(url);
    EXPECT_OK(object.status());
    EXPECT_OK(ReadPart(**object, 1, 2));
    EXPECT_OK((*object)->CheckIsSame());
    return (*object)->version();
  };
  EXPECT_THAT(version("\""), AllOf(testing::StartsWith("\""), EndsWith("\"")));
  EXPECT_THAT(version("dated\""), EndsWith(" GMT"));
  EXPECT_EQ(version(R"(etag", "etag": "W/\"weak\"")"), "W/\"weak\"");
  server_.SetFaults({FaultOfX("unversioned\"")});
  EXPECT_THAT(Open(url), StatusIs(kRefused, AllOf(HasSubstr("ETag"),
                                                  HasSubstr("folder first"))));
  // A time alone shows a change, too.
  server_.SetFaults({FaultOfX("dated\"")});
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  std::filesystem::last_write_time(
      server_.PathOf("x"),
      std::filesystem::file_time_type() + std::chrono::hours(1));
  EXPECT_THAT(ReadPart(*object, 1, 2), StatusIs(kLoss, HasSubstr("changed")));
}

TEST_F(WebObjectTest, WhatCantBeAFileIsRefused) {
  const std::string url = server_.Put("x", "some bytes");
  server_.SetFaults({FaultOfX("unsized\"")});
  EXPECT_THAT(Open(url), StatusIs(kRefused, HasSubstr("how large")));
  server_.SetFaults({FaultOfX("416\"")});
  EXPECT_THAT(Open(url), StatusIs(kRefused, HasSubstr("no part")));
  server_.SetFaults({FaultOfX("404\"")});
  EXPECT_THAT(Open(url), StatusIs(absl::StatusCode::kNotFound, HasSubstr(url)));
  EXPECT_THAT(
      Open(server_.Url("d/")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  server_.SetFaults({FaultOfX(R"(total", "bytes": 99999999999999999999)")});
  EXPECT_THAT(Open(url), StatusIs(kPasses, HasSubstr("Content-Range")));
}

TEST_F(WebObjectTest, WhatIsPackedOnTheWayIsReadAsItComes) {
  const std::string url = server_.Put("x", "not unpacked");
  server_.SetFaults({FaultOfX("packed\"")});
  ASSERT_OK_AND_ASSIGN(const auto object, Open(url));
  EXPECT_THAT(ReadWhole(*object), IsOkAndHolds("not unpacked"));
}

TEST_F(WebObjectTest, ABusyServerIsLeftAloneAsLongAsItWantsWithinALimit) {
  const std::string url = server_.Put("x", "some bytes");
  const auto waited = [&](const std::string& fault) {
    server_.SetFaults({FaultOfX(fault, 1)});
    const absl::Time begin = clock_.Now();
    EXPECT_OK(Open(url).status());
    return clock_.Now() - begin;
  };
  EXPECT_EQ(waited(R"(503", "retry_after": 17)"), absl::Seconds(17));
  EXPECT_EQ(waited(R"(429", "retry_after": 86400)"), Attempts::kMostWait);
  EXPECT_EQ(waited(R"(503", "retry_after": 0)"), absl::Milliseconds(200));
  EXPECT_EQ(waited("503\""), absl::Milliseconds(200));
}

TEST_F(WebObjectTest, RedirectsAreFollowedForEachPart) {
  const std::string bytes = DrawnBytes(50000, 8);
  server_.Put("to", bytes);
  server_.SetFaults({FaultOfX(R"(redirect", "to": "/to?signature=hidden")")});
  ASSERT_OK_AND_ASSIGN(const auto object, Open(server_.Url("x?v=1")));
  EXPECT_TRUE(ReadWhole(*object).value() == bytes);
  std::filesystem::remove(server_.PathOf("to"));
  EXPECT_THAT(ReadPart(*object, 0, 1),
              StatusIs(kLoss, Not(HasSubstr("hidden"))));
}

// Whatever the server does, there are the file's bytes or an error.
TEST_F(WebObjectTest, RandomFaultsChangeNoByte) {
  const std::vector<std::string> faults = {
      R"({"do": "503"})",
      R"({"do": "429", "retry_after": 1})",
      R"({"do": "cut"})",
      R"({"do": "reset"})",
      R"({"do": "short"})",
      R"({"do": "long"})",
      R"({"do": "shifted"})",
      R"({"do": "nowhere"})",
      R"({"do": "garbage"})",
      R"({"do": "whole"})",
      R"({"do": "packed"})",
      R"({"do": "dated"})",
      R"({"do": "chunks", "more": 3})",
      R"({"do": "chunks", "more": -7})",
      R"({"do": "hang", "seconds": 0})",
      R"({"do": "huge", "bytes": 70000})",
      R"({"do": "huge", "bytes": "-1"})",
      R"({"do": "redirect", "to": "/other"})"};
  int whole = 0;
  for (int seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const std::string bytes = DrawnBytes(60000 + seed, seed);
    const std::string url = server_.Put("x", bytes);
    server_.Put("other", bytes);
    // At times more faults than good answers, at times fewer.
    std::vector<std::string> drawn;
    for (int i = 0; i < 1 + seed % 5; ++i) {
      drawn.push_back(faults[(seed * 7 + i * 5) % faults.size()]);
    }
    while (seed % 2 == 0 && drawn.size() < 12) drawn.push_back(R"({"do": ""})");
    server_.SetFaults({absl::StrCat(
        R"({"request": "GET /x", "times": -1, "do": "random", "seed": )", seed,
        R"(, "of": [)", absl::StrJoin(drawn, ", "), "]}")});
    const auto object = Open(url);
    if (!object.ok()) {
      EXPECT_THAT(object.status().code(), AnyOf(kPasses, kRefused));
      continue;
    }
    const auto read = ReadWhole(**object, 7000);
    if (read.ok()) {
      ++whole;
      EXPECT_TRUE(*read == bytes);
    } else {
      EXPECT_THAT(read.status().code(), AnyOf(kPasses, kLoss, kRefused));
      EXPECT_THAT(read.status().message(), HasSubstr(url));
    }
  }
  EXPECT_THAT(whole, Ge(20)) << "most of them pass";
}

class WebCopiesTest : public WebObjectTest {
 protected:
  void SetUp() override {
    WebObjectTest::SetUp();
    std::filesystem::remove_all(folder_);
  }

  std::unique_ptr<ObjectCache> NewCopies() const {
    return std::make_unique<ObjectCache>(
        ObjectCache::Options{.directory = folder_, .piece_bytes = 10000});
  }

  static std::string ContentAt(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_, error)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string folder_ = testing::TempDir() + "/web_copies";
};

TEST_F(WebCopiesTest, AFileIsBroughtOnceAsAnObjectIs) {
  const std::string bytes = DrawnBytes(123456, 9);
  const std::string url = server_.Put("d/x.csv", bytes) + "?v=1";
  const auto copies = NewCopies();
  ASSERT_OK_AND_ASSIGN(const auto sampled, copies->Open(url));
  EXPECT_NE(sampled.object, nullptr) << "a sample needs no copy";
  EXPECT_THAT(Files(), IsEmpty());
  ASSERT_OK(copies->Bring({url}));
  EXPECT_TRUE(ContentAt(copies->Find(url).value()) == bytes);
  server_.ForgetRequests();
  ASSERT_OK(NewCopies()->Bring({url}));
  EXPECT_THAT(server_.Requests("GET"), SizeIs(1)) << "the version alone";
  ASSERT_OK_AND_ASSIGN(const std::string named, copies->BringNamed(url));
  EXPECT_THAT(named, EndsWith("/x.csv"));
  EXPECT_TRUE(ContentAt(named) == bytes);
  ASSERT_OK_AND_ASSIGN(const auto found, FindObjects(url));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].uri, url);
  EXPECT_EQ(found[0].bytes, bytes.size());
}

TEST_F(WebCopiesTest, OfAServerWithoutPartsACopyIsSampled) {
  const std::string bytes = DrawnBytes(123456, 10);
  const std::string url = server_.Put("x", bytes);
  server_.SetFaults({FaultOfX("whole\"")});
  const auto copies = NewCopies();
  ASSERT_OK_AND_ASSIGN(const auto opened, copies->Open(url));
  EXPECT_EQ(opened.object, nullptr);
  EXPECT_TRUE(ContentAt(opened.copy) == bytes);
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(WebCopiesTest, PiecesOfTwoFilesBecomeNoCopy) {
  const std::string url = server_.Put("x", DrawnBytes(50000, 11));
  server_.SetFaults({FaultOfX("replace\"", 1, 2)});
  const auto copies = NewCopies();
  ASSERT_OK(copies->Bring({url}));
  EXPECT_TRUE(ContentAt(copies->Find(url).value()) ==
              ContentAt(server_.PathOf("x")));
  server_.SetFaults({FaultOfX("replace\"")});
  server_.Put("x", DrawnBytes(50000, 12));
  EXPECT_THAT(NewCopies()->Bring({url}), StatusIs(kLoss, HasSubstr(url)));
  EXPECT_THAT(Files(), SizeIs(1));
}

TEST_F(WebCopiesTest, WhatHasNoRoomIsNotBegun) {
  const std::string url = server_.Put("x", "some bytes");
  server_.SetFaults({FaultOfX(R"(total", "bytes": 9223372036854775807)")});
  EXPECT_THAT(NewCopies()->Bring({url}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(url), HasSubstr("MiB are free"))));
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace parasol
