#include "ml/input/object/object_cache.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ml/input/object/copy_lock.h"
#include "ml/input/object/find_objects.h"
#include "ml/input/object/object_copy.h"
#include "ml/input/object/object_store.h"
#include "ml/input/object/object_uri.h"
#include "ml/input/object/remote_file.h"
#include "ml/input/object/testing/object_servers.h"
#include "ml/input/testing/arrow_environment.h"

namespace parasol {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr size_t kPiece = 64 << 10;

// A clock on which nobody waits.
class ImpatientClock final : public SimulatedClock {
 public:
  bool AwaitWithTimeout(absl::Mutex& /*mu*/, const absl::Condition& condition,
                        absl::Duration timeout) override {
    Advance(timeout);
    return condition.Eval();
  }
};

// Bytes that are no two times the same, so that no piece is taken for another.
std::string Bytes(size_t size, uint32_t seed) {
  std::string bytes(size, '\0');
  for (char& c : bytes) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>(seed >> 24);
  }
  return bytes;
}

std::string ContentOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class ObjectCacheTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string lacks = ArrowLacks(); !lacks.empty()) {
      GTEST_SKIP() << lacks;
    }
    server_ = StartObjectServer(GetParam(), "server");
    fs::remove_all(folder_);
  }

  std::unique_ptr<ObjectCache> NewCache() const {
    return std::make_unique<ObjectCache>(ObjectCache::Options{
        .directory = folder_, .piece_bytes = kPiece, .patience = patience_});
  }

  // Returns what a new process has of an object that it brings.
  absl::StatusOr<std::string> Brought(const std::string& uri) const {
    const auto cache = NewCache();
    RETURN_IF_ERROR(cache->Bring({uri}));
    const std::optional<std::string> path = cache->Find(uri);
    return path.has_value() ? ContentOf(*path) : "no copy";
  }

  bool IsBrought(const std::string& uri, const std::string& bytes) const {
    const absl::StatusOr<std::string> brought = Brought(uri);
    EXPECT_OK(brought.status());
    return brought.value_or("") == bytes;
  }

  std::vector<std::string> Folder() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder_, error)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const std::string folder_ = testing::TempDir() + "/copies";
  absl::Duration patience_ = absl::Minutes(1);
  std::unique_ptr<ObjectServer> server_;
};

TEST_P(ObjectCacheTest, AnObjectIsBroughtOnceInPieces) {
  const std::string bytes = Bytes(5 * kPiece + 17, 1);
  const std::string uri = server_->Put("d/x.bin", bytes);
  EXPECT_TRUE(IsBrought(uri, bytes));
  EXPECT_THAT(server_->Reads("d/x.bin"), SizeIs(6));
  EXPECT_THAT(Folder(), SizeIs(1));
  server_->ForgetRequests();
  EXPECT_TRUE(IsBrought(uri, bytes));
  EXPECT_THAT(server_->Requests("GET"), IsEmpty());
}

TEST_P(ObjectCacheTest, EmptyObjectsAndOddKeysAreBrought) {
  std::vector<std::string> uris;
  const std::vector<std::string> keys = {
      "empty",     "a b.csv", "a%20b.csv", "a+b.csv", "ü/日本 %ff&=.csv",
      "a#b;c.csv", "d/[x]"};
  for (const std::string& key : keys) {
    uris.push_back(server_->Put(key, key == "empty" ? "" : key));
  }
  const auto cache = NewCache();
  ASSERT_OK(cache->Bring(uris));
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_TRUE(cache->Find(uris[i]).has_value()) << keys[i];
    EXPECT_EQ(ContentOf(*cache->Find(uris[i])), i == 0 ? "" : keys[i]);
  }
}

TEST_P(ObjectCacheTest, WhatMayPassIsTriedAgain) {
  const std::string bytes = Bytes(3 * kPiece, 2);
  const std::string uri = server_->Put("x", bytes);
  for (const char* fault : {"500", "503", "cut", "short"}) {
    SCOPED_TRACE(fault);
    fs::remove_all(folder_);
    server_->SetFaults({server_->Fault("GET /b/x", fault, 3)});
    EXPECT_TRUE(IsBrought(uri, bytes));
  }
  fs::remove_all(folder_);
  server_->SetFaults({server_->Fault("HEAD /b/x", "503", 2)});
  EXPECT_TRUE(IsBrought(uri, bytes));
}

TEST_P(ObjectCacheTest, WhatDoesNotPassIsNamedAndLeavesNothing) {
  const std::string uri = server_->Put("x", Bytes(kPiece + 5, 3));
  server_->SetFaults({R"({"request": "GET /b/x", "times": -1, "do": "403"})",
                      R"({"request": "HEAD /b/x", "skip": 1, "times": -1,)"
                      R"( "do": "403"})"});
  EXPECT_THAT(
      Brought(uri),
      StatusIs(absl::StatusCode::kPermissionDenied,
               AllOf(HasSubstr(server_->Name("x")), HasSubstr("credentials"),
                     Not(HasSubstr("secret-of-the-test")))));
  EXPECT_THAT(Folder(), IsEmpty());
  EXPECT_THAT(
      Brought(server_->Uri("gone")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(server_->Name("gone?"))));
}

// Every answer has a byte too few, and no answer says so.
TEST_P(ObjectCacheTest, AnAnswerOfAWrongLengthIsNeverTakenForWhole) {
  const std::string uri = server_->Put("x", Bytes(300, 4));
  server_->SetFaults(
      {R"({"request": "GET /b/x", "times": -1, "do": "short"})"});
  ASSERT_OK_AND_ASSIGN(const ObjectUri parts, ParseObjectUri(uri));
  ImpatientClock clock;
  ASSERT_OK_AND_ASSIGN(const auto store, ObjectStore::Open(parts, clock));
  ASSERT_OK_AND_ASSIGN(const auto object, store->OpenObject(parts.path));
  EXPECT_EQ(object->bytes(), 300);
  std::string bytes(300, '\0');
  EXPECT_THAT(object->Read(0, absl::MakeSpan(bytes)),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("too few bytes"),
                             HasSubstr("given up after 8 attempts"))));
}

TEST_P(ObjectCacheTest, AnObjectThatChangesIsAnotherOne) {
  const std::string uri = server_->Put("x", Bytes(2 * kPiece, 5));
  const auto cache = NewCache();
  ASSERT_OK(cache->Bring({uri}));
  const std::string before = *cache->Find(uri);
  const std::string changed = Bytes(2 * kPiece, 6);
  server_->Put("x", changed);
  EXPECT_TRUE(IsBrought(uri, changed));
  // The process that has the other one keeps it.
  ASSERT_OK(cache->Bring({uri}));
  EXPECT_EQ(ContentOf(*cache->Find(uri)), Bytes(2 * kPiece, 5));
  fs::remove(before);
  EXPECT_THAT(cache->Bring({uri}), StatusIs(absl::StatusCode::kDataLoss,
                                            AllOf(HasSubstr(server_->Name("x")),
                                                  HasSubstr("has changed"))));
}

TEST_P(ObjectCacheTest, PiecesOfTwoVersionsBecomeNoCopy) {
  const std::string uri = server_->Put("x", Bytes(4 * kPiece, 7));
  server_->SetFaults(
      {R"({"request": "GET /b/x", "skip": 1, "do": "replace"})"});
  ASSERT_OK_AND_ASSIGN(const std::string brought, Brought(uri));
  EXPECT_TRUE(brought == ContentOf(server_->PathOf("x")));
  fs::remove_all(folder_);
  server_->SetFaults(
      {R"({"request": "HEAD /b/x", "times": -1, "do": "etag"})"});
  EXPECT_THAT(Brought(uri), StatusIs(absl::StatusCode::kDataLoss,
                                     HasSubstr(server_->Name("x"))));
  server_->SetFaults({R"({"request": "GET /b/x", "skip": 2, "do": "remove"})"});
  EXPECT_THAT(Brought(uri), StatusIs(absl::StatusCode::kNotFound,
                                     HasSubstr(server_->Name("x"))));
  EXPECT_THAT(Folder(), IsEmpty());
}

TEST_P(ObjectCacheTest, WhatAKilledProcessLeftIsTakenForNothing) {
  const std::string bytes = Bytes(3 * kPiece, 8);
  const std::string uri = server_->Put("x", bytes);
  ASSERT_OK(Brought(uri).status());
  const std::string copy = folder_ + "/" + Folder().front();
  // Its room is reserved, a piece is there, and nobody has the lock.
  fs::rename(copy, UnfinishedCopy(copy));
  std::ofstream(UnfinishedCopy(copy), std::ios::binary)
      << bytes.substr(0, kPiece) << std::string(2 * kPiece, '\0');
  std::ofstream(UnfinishedCopy(copy) + ".lock") << "process 1 on nowhere";
  const std::string other = UnfinishedCopy(folder_ + "/other");
  std::ofstream(other, std::ios::binary) << "a part";
  EXPECT_TRUE(IsBrought(uri, bytes));
  EXPECT_FALSE(fs::exists(other));
  EXPECT_THAT(Folder(), SizeIs(1));
}

TEST_P(ObjectCacheTest, ProcessesWaitForTheOneThatBrings) {
  const std::string bytes = Bytes(40 * kPiece, 9);
  const std::string uri = server_->Put("x", bytes);
  server_->SetFaults({R"({"request": "GET /b/x", "times": -1, "do": "slow",)"
                      R"( "seconds": 0.02})"});
  std::vector<absl::StatusOr<std::string>> all(4);
  std::vector<std::thread> processes;
  for (auto& brought : all) {
    processes.emplace_back([&] { brought = Brought(uri); });
  }
  for (std::thread& process : processes) process.join();
  for (const auto& brought : all) {
    EXPECT_OK(brought.status());
    EXPECT_TRUE(brought.value_or("") == bytes);
  }
  EXPECT_THAT(server_->Reads("x"), SizeIs(40));
}

TEST_P(ObjectCacheTest, AProcessThatDoesNotGoOnIsNamed) {
  const std::string uri = server_->Put("x", Bytes(kPiece, 10));
  ASSERT_OK(Brought(uri).status());
  const std::string copy = folder_ + "/" + Folder().front();
  fs::remove(copy);
  ASSERT_OK_AND_ASSIGN(auto held, CopyLock::TryTake(UnfinishedCopy(copy)));
  ASSERT_TRUE(held.has_value());
  patience_ = absl::Milliseconds(300);
  EXPECT_THAT(Brought(uri),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr(server_->Name("x")),
                             HasSubstr(absl::StrCat("process ", getpid())))));
}

TEST_P(ObjectCacheTest, TheLastLookAtAnObjectIsTriedAgainToo) {
  const std::string bytes = Bytes(2 * kPiece, 11);
  const std::string uri = server_->Put("x", bytes);
  server_->SetFaults({server_->Fault("HEAD /b/x", "503", 2, /*skip=*/1)});
  EXPECT_TRUE(IsBrought(uri, bytes));
  EXPECT_THAT(server_->Reads("x"), SizeIs(2)) << "nothing is read twice";
}

TEST_P(ObjectCacheTest, NamesOfCopiesThatWereRemovedAreMadeAgain) {
  server_->Put("w/x.bin", "x");
  server_->Put("w/y.bin", "y");
  const std::string folder = server_->Uri("w");
  ASSERT_OK_AND_ASSIGN(const std::string named, NewCache()->BringNamed(folder));
  for (const char* name : {"x.bin", "y.bin"}) fs::remove(named + "/" + name);
  ASSERT_OK_AND_ASSIGN(const std::string again, NewCache()->BringNamed(folder));
  EXPECT_EQ(again, named);
  EXPECT_EQ(ContentOf(again + "/x.bin"), "x");
  EXPECT_EQ(ContentOf(again + "/y.bin"), "y");
}

TEST_P(ObjectCacheTest, ProcessesMakeNamesBesideEachOther) {
  const std::string uri = server_->Put("w/x.bin", "x");
  std::vector<absl::StatusOr<std::string>> all(4);
  std::vector<std::thread> processes;
  for (auto& named : all) {
    processes.emplace_back([&] { named = NewCache()->BringNamed(uri); });
  }
  for (std::thread& process : processes) process.join();
  for (const auto& named : all) {
    ASSERT_OK(named.status());
    EXPECT_EQ(ContentOf(*named), "x");
  }
}

TEST_P(ObjectCacheTest, CopiesAreNotKeptInAStore) {
  const std::string uri = server_->Put("x", "x");
  ObjectCache cache({.directory = "s3://b/copies"});
  EXPECT_THAT(cache.Bring({uri}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--data_cache_dir=s3://b/copies")));
}

TEST_P(ObjectCacheTest, FilesAndFoldersKeepTheirNamesWhereTheyAreNeeded) {
  const std::string file = server_->Put("w/x.safetensors", "weights");
  server_->Put("w/y b.bin", "more");
  server_->Put("w/sub/z", "not in it");
  const auto cache = NewCache();
  ASSERT_OK_AND_ASSIGN(const std::string path, cache->BringNamed(file));
  EXPECT_THAT(path, testing::EndsWith("/x.safetensors"));
  EXPECT_EQ(ContentOf(path), "weights");
  const std::string uri = server_->Uri("w");
  ASSERT_OK_AND_ASSIGN(const std::string folder, cache->BringNamed(uri));
  EXPECT_THAT(folder, testing::EndsWith("/w"));
  EXPECT_EQ(ContentOf(folder + "/x.safetensors"), "weights");
  EXPECT_EQ(ContentOf(folder + "/y b.bin"), "more");
  EXPECT_FALSE(fs::exists(folder + "/sub"));
  // Another process, and another version.
  EXPECT_THAT(NewCache()->BringNamed(uri), IsOkAndHolds(folder));
  server_->Put("w/y b.bin", "else");
  ASSERT_OK_AND_ASSIGN(const std::string other, NewCache()->BringNamed(uri));
  EXPECT_EQ(ContentOf(other + "/y b.bin"), "else");
  EXPECT_EQ(ContentOf(folder + "/y b.bin"), "more");
  EXPECT_THAT(
      cache->BringNamed(server_->Uri("gone")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(server_->Name("gone"))));
}

TEST_P(ObjectCacheTest, ObjectsOfSeveralFoldersKeepTheirNames) {
  server_->Put("w/a/x", "1");
  server_->Put("w/a/other", "not asked for");
  server_->Put("w/b/y", "2");
  const std::vector<std::string> names = {"a/x", "b/y"};
  const auto cache = NewCache();
  ASSERT_OK_AND_ASSIGN(const std::string folder,
                       cache->BringNamed(server_->Uri("w"), names));
  EXPECT_EQ(ContentOf(folder + "/a/x"), "1");
  EXPECT_EQ(ContentOf(folder + "/b/y"), "2");
  EXPECT_FALSE(fs::exists(folder + "/a/other"));
  EXPECT_THAT(NewCache()->BringNamed(server_->Uri("w"), names),
              IsOkAndHolds(folder));
  const std::vector<std::string> gone = {"a/x", "c/z"};
  EXPECT_THAT(
      cache->BringNamed(server_->Uri("w"), gone),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(server_->Name("w/c/z"))));
}

TEST_P(ObjectCacheTest, WhatHasNoRoomIsNotBegun) {
  const std::string uri = server_->Put("x", "");
  constexpr uintmax_t kMoreThanAnyDisk = uintmax_t{1} << 42;
  fs::resize_file(server_->PathOf("x"), kMoreThanAnyDisk);
  // No ETag of all the bytes.
  server_->SetFaults(
      {R"({"request": "HEAD /b/x", "times": -1, "do": "etag"})"});
  EXPECT_THAT(Brought(uri),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(server_->Name("x")), HasSubstr(folder_),
                             HasSubstr("--data_cache_dir"),
                             HasSubstr("4194304 MiB are to be brought"))));
  EXPECT_THAT(server_->Requests("GET"), IsEmpty());
  EXPECT_THAT(Folder(), IsEmpty());
}

TEST_P(ObjectCacheTest, AFolderOfAnotherUserIsNotUsed) {
  const std::string uri = server_->Put("x", "x");
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(Brought(uri),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(folder_)));
  fs::remove(folder_);
}

class FindObjectsTest : public ObjectCacheTest {};

TEST_P(FindObjectsTest, GlobsGoThroughFoldersAsThoseOfFilesDo) {
  for (const char* key :
       {"a.csv", "b.csv", "c.txt", "day=1/p0.csv", "day=1/p1.csv",
        "day=2/p0.csv", "day=2/.hidden.csv", "day=2/x/p0.csv", "[x].csv"}) {
    server_->Put(key, key);
  }
  const auto find = [&](absl::string_view pattern) {
    std::vector<std::string> keys;
    const auto found = FindObjects(server_->Uri(pattern));
    EXPECT_OK(found.status());
    if (!found.ok()) return keys;
    for (const FoundObject& object : *found) {
      const std::string key = ParseObjectUri(object.uri)->path.substr(2);
      EXPECT_EQ(object.bytes, key.size());
      keys.push_back(key);
    }
    return keys;
  };
  EXPECT_THAT(find("?.csv"), ElementsAre("a.csv", "b.csv"));
  EXPECT_THAT(find("[bc].*"), ElementsAre("b.csv", "c.txt"));
  EXPECT_THAT(find("day=*/p*.csv"),
              ElementsAre("day=1/p0.csv", "day=1/p1.csv", "day=2/p0.csv"));
  EXPECT_THAT(find("*/*.csv"),
              ElementsAre("day=1/p0.csv", "day=1/p1.csv", "day=2/p0.csv"));
  EXPECT_THAT(find("day=2/?/p0.csv"), ElementsAre("day=2/x/p0.csv"));
  EXPECT_THAT(find("day=?/x/p0.csv"), ElementsAre("day=2/x/p0.csv"));
  EXPECT_THAT(find("[x].csv"), ElementsAre("[x].csv"));
  EXPECT_THAT(find("\\[x].csv"), ElementsAre("[x].csv"));
}

TEST_P(FindObjectsTest, ListsGoOverPages) {
  for (int i = 0; i < 2345; ++i) server_->Put(absl::StrCat("many/", i), "x");
  ASSERT_OK_AND_ASSIGN(const auto found, FindObjects(server_->Uri("many/*")));
  EXPECT_THAT(found, SizeIs(2345));
  EXPECT_EQ(found[1].uri, server_->Uri("many/1"));
  EXPECT_EQ(found[2].uri, server_->Uri("many/10"));
  EXPECT_THAT(server_->Requests("GET /b "), SizeIs(testing::Ge(3u)));
}

TEST_P(FindObjectsTest, NothingFoundIsNamed) {
  server_->Put("d/x", "x");
  for (const char* key : {"gone", "d/*.csv", "gone/*"}) {
    EXPECT_THAT(FindObjects(server_->Uri(key)),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(key)));
  }
  EXPECT_THAT(
      FindObjects(server_->Uri("d")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
  EXPECT_THAT(FindObjects(server_->Uri("x*", "no-bucket")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-bucket")));
}

TEST_P(FindObjectsTest, AServerThatIsNotThereIsNamed) {
  if (GetParam() != "S3") GTEST_SKIP() << "takes a second for each attempt";
  ImpatientClock clock;
  ASSERT_OK_AND_ASSIGN(
      const ObjectUri uri,
      ParseObjectUri(
          "s3://b/x?region=r&scheme=http&endpoint_override=127.0.0.1:1"));
  ASSERT_OK_AND_ASSIGN(const auto store, ObjectStore::Open(uri, clock));
  EXPECT_THAT(
      store->Find(uri.path),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(server_->Name("x")), HasSubstr("127.0.0.1:1"),
                     HasSubstr("8 attempts"))));
}

TEST_P(FindObjectsTest, AStartIsReadWithoutACopy) {
  const std::string bytes = Bytes(3 << 20, 11);
  const std::string uri = server_->Put("x", bytes);
  ASSERT_OK_AND_ASSIGN(const ObjectUri parts, ParseObjectUri(uri));
  ASSERT_OK_AND_ASSIGN(const auto store, ObjectStore::Open(parts));
  ASSERT_OK_AND_ASSIGN(auto object, store->OpenObject(parts.path));
  RemoteFile file(object);
  ASSERT_EQ(file.size(), bytes.size());
  server_->ForgetRequests();
  for (const auto& [begin, size] :
       std::vector<std::pair<size_t, size_t>>{{0, 4},
                                              {4, 4},
                                              {1000, 100000},
                                              {262140, 8},
                                              {0, 2 << 20},
                                              {(3 << 20) - 3, 3}}) {
    std::string out(size, '\0');
    ASSERT_OK(file.Read(begin, absl::MakeSpan(out)));
    EXPECT_TRUE(out == bytes.substr(begin, size)) << begin << " " << size;
  }
  EXPECT_THAT(server_->Reads("x"), SizeIs(4));
  server_->Put("x", Bytes(3 << 20, 12));
  std::string out(4, '\0');
  EXPECT_OK(file.Read(0, absl::MakeSpan(out)));
  EXPECT_THAT(
      file.Read(1 << 20, absl::MakeSpan(out)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr(server_->Name("x"))));
}

INSTANTIATE_TEST_SUITE_P(Servers, ObjectCacheTest, ObjectServerKinds(),
                         ObjectServerName);
INSTANTIATE_TEST_SUITE_P(Servers, FindObjectsTest, ObjectServerKinds(),
                         ObjectServerName);

}  // namespace
}  // namespace parasol
