// Orders of a chief to a ps, valid in form but with a field that is another
// one, in each state of the ps and from fixed seeds: the ps is right, or
// refuses.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/status_matchers.h"
#include "gtest/gtest.h"
#include "ps/testing/parameter_server_fixture.h"
#include "storage/directory_owner.h"
#include "tests/fuzz/message_mutator.h"

namespace parasol::parameter_server_testing {
namespace {

constexpr uint64_t kMemoryLimit = 16 << 20;

enum class State { kEmpty, kAsynchronous, kSynchronous };

wire::LoadRequest OrderFor(State state) {
  wire::LoadRequest order = LoadOrder();
  wire::TableSpec& table = *order.add_table();
  table.set_name("rows");
  table.set_width(3);
  table.mutable_initializer()->mutable_random_uniform();
  table.mutable_optimizer()->mutable_adam();
  if (state == State::kSynchronous) {
    order.mutable_sync()->set_replicas_to_aggregate(1);
    order.mutable_sync()->set_total_replicas(2);
  }
  return order;
}

// Returns true if a refusal with this code says that nothing has changed. Other
// codes may come from a load that has begun.
bool SaysUnchanged(absl::StatusCode code) {
  return code == absl::StatusCode::kInvalidArgument ||
         code == absl::StatusCode::kFailedPrecondition ||
         code == absl::StatusCode::kNotFound;
}

// A ps that gets mutated orders, and checks of what they did to it.
class Attack {
 public:
  Attack(State state, uint32_t seed, std::string directory,
         std::string checkpoint)
      : state_(state),
        mutator_(seed),
        directory_(std::move(directory)),
        working_(absl::StrCat(directory_, "/.tmp-ckpt-", seed)),
        checkpoint_(std::move(checkpoint)),
        ps_(kMemoryLimit) {
    for (const char* value : {"run-a", "run-b", "w", "rows"}) {
      mutator_.AddString(value);
    }
    for (const std::string& value : {directory_, working_, checkpoint_}) {
      mutator_.AddString(value);
    }
    ps_.server.Registered(kChief, directory_);
    if (state_ == State::kEmpty) return;
    EXPECT_OK(ps_.server.Load(OrderFor(state_)));
    if (state_ == State::kAsynchronous) {
      EXPECT_OK(Push(ps_, 1, 2));
    }
  }

  void Send() {
    switch (mutator_.Below(4)) {
      case 0:
        return Snapshot();
      case 1:
        return Prepare();
      default:
        return Load();
    }
  }

  // Numbers of orders that were carried out and refused.
  int done() const { return done_; }
  int refused() const { return refused_; }

  // The right order of the newest chief is carried out, whatever was sent.
  void CheckRightOrder() {
    const int64_t epoch = std::max(kChief, newest_epoch_);
    wire::LoadRequest order = OrderFor(State::kAsynchronous);
    order.set_run_id("run-next");
    order.mutable_order()->set_chief_epoch(epoch);
    ASSERT_OK(ps_.server.Load(order));
    EXPECT_EQ(ps_.server.holding().run_id, "run-next");
  }

 private:
  // The run and the values, with the numbers of updates.
  struct Contents {
    std::string run;
    uint64_t layout = 0;
    std::vector<float> values = {};
    std::vector<float> rows = {};
    int64_t updates = 0;

    bool operator==(const Contents& that) const {
      return run == that.run && layout == that.layout &&
             values == that.values && rows == that.rows &&
             updates == that.updates;
    }
  };
  Contents Read() {
    Contents contents = {.run = ps_.server.holding().run_id,
                         .layout = ps_.server.holding().layout};
    wire::RequestHeader request = PullRequest();
    request.set_run_id(contents.run);
    wire::RowPull& rows = *request.add_operation()->mutable_row_pull();
    rows.set_rows(2);
    const std::string ids(2 * sizeof(uint64_t), '\1');
    const auto results = ExecuteAll(ps_, request, {ViewOf(ids)});
    if (results[0].ok()) {
      contents.values = FloatsOf(results[0]->payloads);
      contents.updates = results[0]->max_updates;
    }
    if (results[1].ok()) contents.rows = FloatsOf(results[1]->payloads);
    return contents;
  }

  template <typename Request>
  void Mutate(Request& request) {
    for (size_t i = mutator_.Below(3); i < 3; ++i) mutator_.Mutate(request);
  }
  // Returns true if the ps has to refuse the order for its header.
  bool IsForeign(const wire::OrderHeader& order) const {
    return order.incarnation() != kIncarnation ||
           order.chief_epoch() < std::max(kChief, accepted_epoch_) ||
           order.chief_epoch() > kMaxChiefEpoch;
  }
  // Checks what is right for every order: `result` is its answer.
  void Check(const wire::OrderHeader& order, const absl::Status& result) {
    if (IsForeign(order)) {
      EXPECT_FALSE(result.ok());
    } else {
      newest_epoch_ = std::max(newest_epoch_, order.chief_epoch());
      // Nothing of a refused order is kept.
      if (result.ok()) {
        accepted_epoch_ = std::max(accepted_epoch_, order.chief_epoch());
      }
    }
    ++(result.ok() ? done_ : refused_);
    EXPECT_EQ(result.message().find('\n'), std::string::npos) << result;
    // No prepared cut holds the shard any more.
    ps_.clock.Advance(absl::Minutes(1));
  }

  // Returns the answer of a call that may wait on the ps's clock.
  absl::Status WhileTimePasses(const std::function<absl::Status()>& call) {
    absl::Status result;
    absl::Notification done;
    std::thread caller([&] {
      result = call();
      done.Notify();
    });
    while (!done.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
      ps_.clock.Advance(absl::Seconds(1));
    }
    caller.join();
    return result;
  }

  void Load() {
    wire::LoadRequest order = OrderFor(static_cast<State>(mutator_.Below(3)));
    if (mutator_.Below(3) == 0) {
      order.set_checkpoint(checkpoint_);
      // The checkpoint has none.
      order.clear_table();
    }
    if (mutator_.Below(3) == 0) order.set_run_id("run-b");
    order.mutable_order()->set_chief_epoch(std::max(kChief, newest_epoch_));
    Mutate(order);
    SCOPED_TRACE(order.ShortDebugString().substr(0, 2000));
    const Contents before = Read();
    const absl::Status result = ps_.server.Load(order).status();
    Check(order.order(), result);
    if (result.ok()) {
      EXPECT_EQ(ps_.server.holding().run_id, order.run_id());
      EXPECT_EQ(ps_.server.holding().layout, order.order().layout());
    } else if (SaysUnchanged(result.code())) {
      EXPECT_TRUE(Read() == before) << result;
    }
    EXPECT_LE(ps_.metrics.value_bytes.value() + ps_.metrics.slot_bytes.value(),
              kMemoryLimit);
  }

  void Snapshot() {
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    request.set_directory(working_);
    request.set_file_name(absl::StrCat("shard-", ++files_, ".sst"));
    *request.mutable_order() = OrderHeader();
    request.mutable_order()->set_chief_epoch(std::max(kChief, newest_epoch_));
    if (mutator_.Below(3) == 0) request.set_at_updates(0);
    Mutate(request);
    // An order that is carried out writes to the disk.
    if (mutator_.Below(4) != 0) mutator_.Mutate(*request.mutable_order());
    SCOPED_TRACE(request.ShortDebugString());
    const Contents before = Read();
    const absl::Status result = WhileTimePasses([&] {
      return ps_.server.Snapshot(request, [] { return true; }).status();
    });
    Check(request.order(), result);
    EXPECT_TRUE(Read() == before) << result;
  }

  void Prepare() {
    wire::PrepareSnapshotRequest request;
    request.set_run_id("run-a");
    *request.mutable_order() = OrderHeader();
    request.mutable_order()->set_chief_epoch(std::max(kChief, newest_epoch_));
    Mutate(request);
    SCOPED_TRACE(request.ShortDebugString());
    const Contents before = Read();
    const absl::Status result = ps_.server.PrepareSnapshot(request).status();
    Check(request.order(), result);
    EXPECT_TRUE(Read() == before) << result;
  }

  const State state_;
  MessageMutator mutator_;
  const std::string directory_, working_, checkpoint_;
  Ps ps_;
  // The largest epochs of orders, and of those that were carried out.
  int64_t newest_epoch_ = 0;
  int64_t accepted_epoch_ = 0;
  int files_ = 0;
  int done_ = 0, refused_ = 0;
};

// Returns the files below `directory` and their contents.
std::map<std::string, std::string> FilesIn(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().string()] =
          std::string(std::istreambuf_iterator<char>(file), {});
    }
  }
  return files;
}

class OrderMutationTest : public testing::TestWithParam<State> {};

TEST_P(OrderMutationTest, ThePsIsRightOrRefuses) {
  constexpr uint32_t kAttacks = 40;
  constexpr int kOrders = 100;
  // Names without a directory lead there.
  std::filesystem::current_path(testing::TempDir());
  Checkpoints checkpoints;
  Ps saved;
  ASSERT_OK(saved.server.Load(OrderFor(State::kAsynchronous)));
  ASSERT_OK(Push(saved, 1, 2));
  const std::string checkpoint = checkpoints.Write({&saved}, {});
  const std::string directory = checkpoint.substr(0, checkpoint.rfind('/'));
  int done = 0, refused = 0;
  const std::map<std::string, std::string> before = FilesIn(testing::TempDir());
  for (uint32_t seed = 0; seed < kAttacks; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const std::string working = absl::StrCat(directory, "/.tmp-ckpt-", seed);
    std::filesystem::create_directory(working);
    Attack attack(GetParam(), seed, directory, checkpoint);
    for (int i = 0; i < kOrders && !HasFailure(); ++i) attack.Send();
    if (!HasFailure()) attack.CheckRightOrder();
    if (HasFailure()) return;
    std::filesystem::remove_all(working);
    // An order may ask for one, and has it in the chief's directory.
    std::filesystem::remove_all(absl::StrCat(directory, "/journal"));
    done += attack.done();
    refused += attack.refused();
  }
  EXPECT_GT(done, 350);
  EXPECT_GT(refused, 1000);
  EXPECT_EQ(FilesIn(testing::TempDir()), before)
      << "files outside of the working directory";
}

INSTANTIATE_TEST_SUITE_P(States, OrderMutationTest,
                         testing::Values(State::kEmpty, State::kAsynchronous,
                                         State::kSynchronous),
                         [](const auto& info) -> std::string {
                           switch (info.param) {
                             case State::kEmpty:
                               return "Empty";
                             case State::kAsynchronous:
                               return "Asynchronous";
                             case State::kSynchronous:
                               return "Synchronous";
                           }
                           return "";
                         });

}  // namespace
}  // namespace parasol::parameter_server_testing
