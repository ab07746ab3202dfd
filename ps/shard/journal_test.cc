#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter.pb.h"
#include "ps/operation/operation.h"
#include "ps/shard/parameter_server.h"
#include "ps/testing/parameter_server_fixture.h"
#include "ps/testing/requests.h"
#include "storage/testing/disk_faults.h"

// A ps with a journal that is lost, at any moment, and its successor.
namespace parasol::parameter_server_testing {
namespace {

class ShardJournalTest
    : public ::testing::TestWithParam<wire::LoadRequest::Journal> {
 protected:
  void SetUp() override { directory_ = checkpoints_.directory(); }

  wire::LoadRequest Order() const {
    wire::LoadRequest order = AdamOrder();
    order.set_journal(GetParam());
    return order;
  }

  // A ps in the place of one that is gone.
  std::unique_ptr<Ps> NextPs(const wire::LoadRequest& order) const {
    auto ps = std::make_unique<Ps>();
    ps->server.Registered(kChief, directory_);
    EXPECT_OK(ps->server.Load(order).status());
    return ps;
  }

  // Pushes, and waits until the push is acknowledged.
  static absl::StatusOr<OperationResult> PushAndWait(
      Ps& ps, const wire::RequestHeader& header, const std::string& gradient) {
    const auto message = ReceivedMessage::Create(header, {ViewOf(gradient)});
    EXPECT_OK(message);
    absl::Notification answered;
    absl::StatusOr<OperationResult> answer;
    ps.server.Execute(*message, 0, [&](absl::StatusOr<OperationResult> result) {
      answer = std::move(result);
      answered.Notify();
    });
    answered.WaitForNotification();
    return answer;
  }
  static absl::StatusOr<OperationResult> PushOf(Ps& ps, uint64_t sequence,
                                                uint64_t worker = kWorker) {
    const float value = .01f * static_cast<float>(sequence % 7 + worker % 3);
    return PushAndWait(ps, PushRequest(sequence, worker),
                       Floats(kElements, value));
  }

  std::vector<std::string> Segments() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             absl::StrCat(directory_, "/journal"))) {
      const std::string path = entry.path().string();
      if (absl::StrContains(path, "segment-")) paths.push_back(path);
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  std::string directory_;
  Checkpoints checkpoints_;
};

TEST_P(ShardJournalTest, TheSuccessorHasAllThatWasAcknowledged) {
  std::vector<float> values;
  {
    const auto ps = NextPs(Order());
    for (uint64_t i = 1; i <= 20; ++i) ASSERT_OK(PushOf(*ps, i));
    values = Values(*ps);
  }
  const auto successor = NextPs(Order());
  EXPECT_EQ(Values(*successor), values);
  // Pushes are known, and later ones give what they would have given.
  EXPECT_TRUE(IsDuplicate(PushOf(*successor, 20)));
  EXPECT_FALSE(IsDuplicate(PushOf(*successor, 21)));
  const std::vector<float> more = Values(*successor);
  EXPECT_NE(more, values);
  const auto third = NextPs(Order());
  EXPECT_EQ(Values(*third), more);
}

TEST_P(ShardJournalTest, FollowsACheckpoint) {
  std::vector<float> values;
  std::string checkpoint;
  {
    const auto ps = NextPs(Order());
    for (uint64_t i = 1; i <= 5; ++i) ASSERT_OK(PushOf(*ps, i));
    checkpoint = checkpoints_.Write({ps.get()}, {"m", "v"});
    for (uint64_t i = 6; i <= 9; ++i) ASSERT_OK(PushOf(*ps, i));
    values = Values(*ps);
  }
  {
    const auto successor = NextPs(From(Order(), checkpoint));
    EXPECT_EQ(Values(*successor), values);
    EXPECT_TRUE(IsDuplicate(PushOf(*successor, 5)));
    EXPECT_TRUE(IsDuplicate(PushOf(*successor, 9)));
    ASSERT_OK(PushOf(*successor, 10));
    values = Values(*successor);
    // Its checkpoint is not complete: another one is none of the journal's.
  }
  EXPECT_EQ(Values(*NextPs(From(Order(), checkpoint))), values);
}

// A ps that has acted for a lost one on another machine.
TEST_P(ShardJournalTest, AJournalThatIsElsewhereIsNoLossIfTheCheckpointHasAll) {
  const auto ps = NextPs(Order());
  ASSERT_OK(PushOf(*ps, 1));
  wire::LoadRequest order =
      From(Order(), checkpoints_.Write({ps.get()}, {"m", "v"}));
  const std::string elsewhere = directory_ + "/elsewhere";
  for (const bool is_known_to_have_all : {false, true}) {
    if (is_known_to_have_all) order.mutable_standby();
    auto load = ShardLoad::Create(order, {.journal_directory = elsewhere});
    ASSERT_OK(load);
    ASSERT_OK(load->Open());
    ASSERT_OK(load->Run());
    EXPECT_EQ(load->restored_journal().lost.empty(), is_known_to_have_all);
  }
}

TEST_P(ShardJournalTest, KeepsWhatTheTwoNewestCheckpointsNeed) {
  const auto ps = NextPs(Order());
  std::vector<std::string> written;
  for (uint64_t i = 1; i <= 4; ++i) {
    ASSERT_OK(PushOf(*ps, i));
    written.push_back(checkpoints_.Write({ps.get()}, {"m", "v"}));
  }
  const std::vector<float> values = Values(*ps);
  // Found out when the next one begins: segments 3, 4, 5 are behind 2, 3, 4.
  EXPECT_EQ(Segments().size(), 3);
  EXPECT_EQ(Values(*NextPs(From(Order(), written[3]))), values);
  EXPECT_EQ(Values(*NextPs(From(Order(), written[2]))), values);
  EXPECT_EQ(Values(*NextPs(From(Order(), written[1]))), values);
  // Nothing leads from there to now.
  const auto old = NextPs(From(Order(), written[0]));
  EXPECT_NE(Values(*old), values);
  EXPECT_EQ(old->metrics.lost_journals_total.value(), 1);
  // What the newer checkpoints need is put aside, for people.
  EXPECT_THAT(Segments(), testing::Contains(testing::HasSubstr("/unread-")));
  for (uint64_t i = 5; i <= 8; ++i) {
    ASSERT_OK(PushOf(*old, i));
    checkpoints_.Write({old.get()}, {"m", "v"});
  }
  EXPECT_THAT(Segments(),
              testing::Not(testing::Contains(testing::HasSubstr("/unread-"))));
}

TEST_P(ShardJournalTest, WhatAStoppedPredecessorWritesIsNotRead) {
  const auto stopped = NextPs(Order());
  ASSERT_OK(PushOf(*stopped, 1));
  const auto successor = NextPs(Order());
  EXPECT_THAT(
      PushOf(*stopped, 2, /*worker=*/99),
      StatusIs(absl::StatusCode::kUnavailable,
               testing::HasSubstr("another process has taken this journal")));
  ASSERT_OK(PushOf(*successor, 2));
  const std::vector<float> values = Values(*successor);
  EXPECT_EQ(Values(*NextPs(Order())), values);
}

TEST_P(ShardJournalTest, PushesOfManyThreadsAreReadInTheOrderOfTheirUpdates) {
  std::vector<float> values;
  {
    const auto ps = NextPs(Order());
    std::vector<std::thread> workers;
    for (uint64_t worker = 1; worker <= 4; ++worker) {
      workers.emplace_back([&ps, worker] {
        for (uint64_t i = 1; i <= 10; ++i) {
          EXPECT_OK(PushOf(*ps, i, worker));
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    values = Values(*ps);
  }
  EXPECT_EQ(Values(*NextPs(Order())), values);
}

TEST_P(ShardJournalTest, DamageIsSaidAndWhatPrecedesItIsKept) {
  std::vector<float> values;
  std::string segment;
  {
    const auto ps = NextPs(Order());
    ASSERT_OK(PushOf(*ps, 1));
    values = Values(*ps);
    segment = Segments().back();
    const uint64_t size = std::filesystem::file_size(segment);
    ASSERT_OK(PushOf(*ps, 2));
    ASSERT_OK(PushOf(*ps, 3));
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size + 100));
    file.put('x');
  }
  {
    const auto successor = NextPs(Order());
    EXPECT_EQ(Values(*successor), values);
    EXPECT_EQ(successor->metrics.lost_journals_total.value(), 1);
    EXPECT_EQ(successor->metrics.replayed_pushes_total.value(), 1);
    ASSERT_OK(PushOf(*successor, 2));
    values = Values(*successor);
  }
  const auto third = NextPs(Order());
  EXPECT_EQ(Values(*third), values);
  EXPECT_EQ(third->metrics.lost_journals_total.value(), 0);
}

// A machine without power keeps what its disk had.
TEST_P(ShardJournalTest, ALostEndOfTheJournalIsCounted) {
  {
    const auto ps = NextPs(Order());
    ASSERT_OK(PushOf(*ps, 1));
    const std::string segment = Segments().back();
    const uint64_t size = std::filesystem::file_size(segment);
    ASSERT_OK(PushOf(*ps, 2));
    std::filesystem::resize_file(segment, size);
  }
  const auto successor = NextPs(Order());
  wire::RequestHeader next = PushRequest(2000);
  next.set_acknowledged(1999);
  ASSERT_OK(PushAndWait(*successor, next, Floats(kElements, 1)));
  EXPECT_EQ(successor->metrics.lost_pushes_total.value(), 1998);
  next = PushRequest(2001);
  next.set_acknowledged(2000);
  ASSERT_OK(PushAndWait(*successor, next, Floats(kElements, 1)));
  EXPECT_EQ(successor->metrics.lost_pushes_total.value(), 1998);
  // The journal has what was acknowledged behind the loss.
  const auto third = NextPs(Order());
  EXPECT_EQ(Values(*third), Values(*successor));
  EXPECT_EQ(third->metrics.replayed_pushes_total.value(), 3);
  // What the successor has counted is not lost once more.
  next = PushRequest(2002);
  next.set_acknowledged(2001);
  ASSERT_OK(PushAndWait(*third, next, Floats(kElements, 1)));
  EXPECT_EQ(third->metrics.lost_pushes_total.value(), 0);
}

// It has room later, as for pushes: the order comes again.
TEST_P(ShardJournalTest, ADiskWithoutRoomIsNoEnd) {
  Ps ps;
  ps.server.Registered(kChief, directory_);
  FailFsyncOf(std::filesystem::canonical(directory_), ENOSPC);
  EXPECT_THAT(ps.server.Load(Order()), StatusIs(absl::StatusCode::kUnavailable))
      << "the name of the first folder";
  FailFsyncOf("");
  ASSERT_OK(PushOf(*NextPs(Order()), 1));
  const std::string segment = std::filesystem::canonical(Segments().back());
  const std::string folder = segment.substr(0, segment.rfind('/'));
  const std::string parent = folder.substr(0, folder.rfind('/'));
  // The journal's own name, and what was read of it.
  for (const std::string& path : {parent, segment}) {
    SCOPED_TRACE(path);
    if (path == segment && GetParam() != wire::LoadRequest::ON_DISK) continue;
    for (const int code : {ENOSPC, EDQUOT}) {
      FailFsyncOf(path, code);
      EXPECT_THAT(ps.server.Load(Order()),
                  StatusIs(absl::StatusCode::kUnavailable));
      FailFsyncOf("");
    }
  }
  // What gets another name: a segment behind damage, and another run's.
  const std::string next = absl::StrCat(directory_, "/journal/",
                                        folder.substr(folder.rfind('/') + 1),
                                        "/segment-000000000009");
  std::filesystem::copy_file(segment, next);
  FailRenamesOf(next, ENOSPC);
  EXPECT_THAT(ps.server.Load(Order()), StatusIs(absl::StatusCode::kUnavailable,
                                                testing::HasSubstr("rename")));
  const std::string first = absl::StrCat(next.substr(0, next.rfind('/')), "/",
                                         segment.substr(folder.size() + 1));
  std::filesystem::resize_file(first, 10);
  FailRenamesOf(first, ENOSPC);
  EXPECT_THAT(ps.server.Load(Order()), StatusIs(absl::StatusCode::kUnavailable,
                                                testing::HasSubstr("rename")));
  FailRenamesOf("", 0);
  EXPECT_OK(ps.server.Load(Order()));
}

TEST_P(ShardJournalTest, ARefusedPushIsRefusedAgain) {
  std::vector<float> values;
  {
    const auto ps = NextPs(Order());
    ASSERT_OK(PushOf(*ps, 1));
    EXPECT_THAT(PushAndWait(*ps, PushRequest(2), Floats(kElements, NAN)),
                StatusIs(absl::StatusCode::kOutOfRange));
    ASSERT_OK(PushOf(*ps, 2));
    values = Values(*ps);
  }
  EXPECT_EQ(Values(*NextPs(Order())), values);
}

TEST_P(ShardJournalTest, AnotherRunsJournalIsNotRead) {
  {
    const auto ps = NextPs(Order());
    ASSERT_OK(PushOf(*ps, 1));
  }
  wire::LoadRequest other = Order();
  other.set_run_id("run-b");
  const auto ps = NextPs(other);
  EXPECT_EQ(ps->metrics.replayed_pushes_total.value(), 0);
  // It is a stranger's, not a loss.
  EXPECT_EQ(ps->metrics.lost_journals_total.value(), 0);
}

TEST_P(ShardJournalTest, ASynchronousShardGoesOnInItsStep) {
  wire::LoadRequest order = Order();
  order.mutable_sync()->set_replicas_to_aggregate(2);
  order.mutable_sync()->set_total_replicas(2);
  const auto push = [](Ps& ps, int64_t step, int32_t replica) {
    wire::RequestHeader header = PushRequest(2 * step + replica + 1);
    wire::SyncStep& sync =
        *header.mutable_operation(0)->mutable_push()->mutable_sync();
    sync.set_step(step);
    sync.set_replica(replica);
    const std::string gradient =
        Floats(kElements, .1f * static_cast<float>(step + replica + 1));
    const auto message = ReceivedMessage::Create(header, {ViewOf(gradient)});
    ASSERT_OK(message);
    ps.server.Execute(*message, 0, [](absl::StatusOr<OperationResult>) {});
  };
  // An undisturbed one.
  std::vector<float> values;
  {
    Ps ps;
    wire::LoadRequest plain = order;
    plain.clear_journal();
    ASSERT_OK(ps.server.Load(plain).status());
    for (int64_t step = 0; step < 6; ++step) {
      push(ps, step, 1);
      push(ps, step, 0);
    }
    values = Values(ps);
  }
  std::string checkpoint;
  {
    const auto ps = NextPs(order);
    for (int64_t step = 0; step < 3; ++step) {
      push(*ps, step, 0);
      push(*ps, step, 1);
    }
    push(*ps, 3, 1);  // in the cut's step
    checkpoint = checkpoints_.Write({ps.get()}, {"m", "v"}, 3);
    push(*ps, 3, 0);
    push(*ps, 4, 0);
    push(*ps, 4, 1);
    push(*ps, 5, 1);
  }
  {
    const auto successor = NextPs(From(order, checkpoint));
    EXPECT_EQ(successor->server.progress(), 5);
    push(*successor, 5, 0);
    EXPECT_EQ(successor->server.progress(), 6);
    EXPECT_EQ(Values(*successor), values);
  }
  // All of it again, from the initial values on.
  const auto another = NextPs(order);
  EXPECT_EQ(another->server.progress(), 6);
  EXPECT_EQ(Values(*another), values);
}

// The chief orders as soon as it has registered a ps.
TEST_P(ShardJournalTest, AnOrderMayOvertakeTheAnswerToTheRegistration) {
  Ps ps;
  ps.server.Registered(kChief - 1, "/of/the/chief/before");
  EXPECT_THAT(ps.server.Load(Order()),
              StatusIs(absl::StatusCode::kUnavailable));
  ps.server.Registered(kChief, directory_);
  EXPECT_OK(ps.server.Load(Order()));
  EXPECT_THAT(Segments(), testing::SizeIs(1));
}

TEST_P(ShardJournalTest, NeedsADirectory) {
  Ps ps;
  ps.server.Registered(kChief, /*checkpoint_directory=*/"");
  EXPECT_THAT(ps.server.Load(Order()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("--journal_dir")));
}

INSTANTIATE_TEST_SUITE_P(All, ShardJournalTest,
                         ::testing::Values(wire::LoadRequest::WRITTEN,
                                           wire::LoadRequest::ON_DISK));

}  // namespace
}  // namespace parasol::parameter_server_testing
