// Orders of which one field is absurd: one that is refused changes nothing, and
// the chief's next order is obeyed.
#include <climits>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "gtest/gtest.h"
#include "ps/shard/parameter_server.h"
#include "ps/testing/parameter_server_fixture.h"

namespace parasol::parameter_server_testing {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kHuge = int64_t{1} << 62;

// Sets a field to its `choice`-th absurd value; returns false if there is none.
bool SetAbsurd(const FieldDescriptor& field, int choice, Message& message) {
  const google::protobuf::Reflection& fields = *message.GetReflection();
  const int64_t values[] = {kHuge, -1, INT64_MIN};
  if (field.is_repeated()) {
    if (choice > 0) return false;
    fields.ClearField(&message, &field);
    return true;
  }
  if (choice >= 3) return false;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      fields.SetInt64(&message, &field, values[choice]);
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      fields.SetUInt64(&message, &field, values[choice]);
      return true;
    case FieldDescriptor::CPPTYPE_UINT32:
      fields.SetUInt32(&message, &field, UINT32_MAX - choice);
      return true;
    case FieldDescriptor::CPPTYPE_INT32:
      fields.SetInt32(&message, &field, choice == 0 ? INT_MAX : INT_MIN);
      return true;
    case FieldDescriptor::CPPTYPE_STRING:
      if (choice > 0) return false;
      fields.SetString(&message, &field, "/no/such/place");
      return true;
    default:
      return false;
  }
}

// Calls `use` with `order`, one field of which, also of messages in it, is
// absurd.
void ForEachAbsurd(
    const Message& order,
    const std::function<void(const Message&, const std::string& name)>& use) {
  const google::protobuf::Descriptor& type = *order.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    for (int choice = 0;; ++choice) {
      std::unique_ptr<Message> changed(order.New());
      changed->CopyFrom(order);
      if (!SetAbsurd(field, choice, *changed)) break;
      use(*changed, absl::StrCat(field.full_name(), " #", choice));
    }
    const bool is_message =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        !field.is_repeated();
    if (!is_message || !order.GetReflection()->HasField(order, &field)) {
      continue;
    }
    const Message& inner = order.GetReflection()->GetMessage(order, &field);
    ForEachAbsurd(inner, [&](const Message& absurd, const std::string& name) {
      std::unique_ptr<Message> changed(order.New());
      changed->CopyFrom(order);
      changed->GetReflection()
          ->MutableMessage(changed.get(), &field)
          ->CopyFrom(absurd);
      use(*changed, name);
    });
  }
}

class RefusedOrdersTest : public testing::TestWithParam<bool> {
 protected:
  RefusedOrdersTest()
      : root_(absl::StrCat(testing::TempDir(), "/refused_", GetParam())),
        store_(*CheckpointStore::OpenForWriting(root_)) {
    ps_.server.Registered(kChief, root_);
    load_ = LoadOrder();
    load_.mutable_order()->set_number(1);
    if (GetParam()) {
      load_.mutable_sync()->set_replicas_to_aggregate(1);
      load_.mutable_sync()->set_total_replicas(1);
    }
  }

  wire::SnapshotRequest SnapshotOrder() {
    wire::SnapshotRequest request;
    request.set_run_id("run-a");
    *request.mutable_order() = OrderHeader();
    request.set_directory(store_.Begin(++snapshots_).value());
    request.set_file_name("shard.sst");
    if (GetParam()) request.set_at_updates(0);
    return request;
  }
  static wire::PrepareSnapshotRequest PrepareOrder() {
    wire::PrepareSnapshotRequest request;
    request.set_run_id("run-a");
    *request.mutable_order() = OrderHeader();
    return request;
  }

  // What the chief orders next.
  void ExpectObedience(const std::string& after) {
    SCOPED_TRACE(after);
    load_.mutable_order()->set_number(load_.order().number() + 1);
    EXPECT_OK(ps_.server.Load(load_));
    EXPECT_THAT(Values(ps_), Each(0));
    const auto prepared = ps_.server.PrepareSnapshot(PrepareOrder());
    EXPECT_EQ(prepared.ok(), GetParam()) << prepared.status();
    EXPECT_OK(ps_.server.Snapshot(SnapshotOrder()));
  }

  const std::string root_;
  CheckpointStore store_;
  int64_t snapshots_ = 0;
  Ps ps_{uint64_t{64} << 20};
  wire::LoadRequest load_;
};

INSTANTIATE_TEST_SUITE_P(Modes, RefusedOrdersTest, testing::Bool());

TEST_P(RefusedOrdersTest, AbsurdLoadsLeaveThePsToItsChief) {
  ASSERT_OK(ps_.server.Load(load_));
  ForEachAbsurd(load_, [this](const Message& absurd, const std::string& name) {
    const auto& order = static_cast<const wire::LoadRequest&>(absurd);
    const absl::Status status = ps_.server.Load(order).status();
    if (!status.ok()) {
      EXPECT_EQ(ps_.server.holding().run_id, "run-a") << name;
      EXPECT_EQ(ps_.server.holding().layout, kLayout) << name;
    }
    ExpectObedience(name);
  });
}

TEST_P(RefusedOrdersTest, AbsurdSnapshotsLeaveThePsToItsChief) {
  ASSERT_OK(ps_.server.Load(load_));
  ForEachAbsurd(
      SnapshotOrder(), [this](const Message& absurd, const std::string& name) {
        const auto& order = static_cast<const wire::SnapshotRequest&>(absurd);
        EXPECT_FALSE(ps_.server.Snapshot(order, [] { return true; }).ok() &&
                     order.order().chief_epoch() != kChief)
            << name;
        ExpectObedience(name);
      });
}

TEST_P(RefusedOrdersTest, AbsurdHoldsLeaveThePsToItsChief) {
  ASSERT_OK(ps_.server.Load(load_));
  ForEachAbsurd(
      PrepareOrder(), [this](const Message& absurd, const std::string& name) {
        ps_.server
            .PrepareSnapshot(
                static_cast<const wire::PrepareSnapshotRequest&>(absurd))
            .IgnoreError();
        ExpectObedience(name);
      });
}

// A job without steps has no cut.
TEST_P(RefusedOrdersTest, AHoldThatTheModeForbidsKeepsNoEpoch) {
  ASSERT_OK(ps_.server.Load(load_));
  wire::PrepareSnapshotRequest hold = PrepareOrder();
  hold.mutable_order()->set_chief_epoch(kChief + 7);
  if (GetParam()) hold.set_run_id("run-b");
  EXPECT_THAT(ps_.server.PrepareSnapshot(hold),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ExpectObedience("a refused hold");
}

TEST_P(RefusedOrdersTest, ALoadOfTheHeldShardWithOtherPartsIsRefused) {
  ASSERT_OK(ps_.server.Load(load_));
  wire::LoadRequest without_parts = load_;
  without_parts.clear_part();
  without_parts.mutable_order()->set_chief_epoch(kChief + 7);
  EXPECT_THAT(ps_.server.Load(without_parts),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has other parts")));
  ExpectObedience("a load without parts");
}

// Pushes would wait for it, for ever.
TEST_P(RefusedOrdersTest, AStandbyThatNobodyMakesIsRefused) {
  wire::LoadRequest order = load_;
  order.mutable_standby();
  EXPECT_THAT(ps_.server.Load(order),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("makes none of its shard")));
  EXPECT_OK(ps_.server.Load(load_));
}

TEST_P(RefusedOrdersTest, MoreThanTheMemoryIsRefusedBeforeAnythingChanges) {
  ASSERT_OK(ps_.server.Load(load_));
  wire::LoadRequest huge = load_;
  huge.set_run_id("run-b");
  huge.mutable_order()->set_chief_epoch(kChief + 7);
  const int64_t elements = int64_t{1} << 34;
  *huge.mutable_part(0) = MakePart(0, "w", elements, 0, elements);
  EXPECT_THAT(ps_.server.Load(huge),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ExpectObedience("2^34 elements");
}

}  // namespace
}  // namespace parasol::parameter_server_testing
