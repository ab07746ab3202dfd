#include "worker/store/updating_model.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"
#include "ml/model/device_training.h"
#include "worker/store/device_model.h"

namespace parasol {
namespace {

class UpdatingModel : public DeviceModel {
 public:
  UpdatingModel(std::unique_ptr<Model> model, DeviceVariables& updated,
                DeviceTables* updated_tables)
      : DeviceModel(std::move(model)),
        updated_(updated),
        updated_tables_(updated_tables) {
    if (updated_tables != nullptr) {
      this->model().device_training()->UseTables(*updated_tables);
    }
  }

  // The device may still read the batch that was trained on last; not the one
  // before it.
  absl::Status Stage(const Batch& batch, StagedBatch& staged) override {
    if (&staged == last_trained_) {
      RETURN_IF_ERROR(updated_.Await());
    }
    last_staged_ = &staged;
    batch_ = &batch;
    absl::Status status = model().Stage(batch, staged);
    while (absl::IsResourceExhausted(status)) {
      ASSIGN_OR_RETURN(const Room room, MakeRoom(status));
      if (room == Room::kNone) break;
      status = model().Stage(batch, staged);
    }
    return status;
  }

  absl::StatusOr<BatchResult> Gradients(StagedBatch& staged, uint64_t seed,
                                        GradientSinks sinks) override {
    last_trained_ = &staged;
    return RunWithRoom(staged, [&] { return Train(staged, seed, sinks); });
  }

  absl::StatusOr<EvaluatedBatch> Evaluate(StagedBatch& staged) override {
    return RunWithRoom(staged, [&] { return model().Evaluate(staged); });
  }

 private:
  // What has made room on the device.
  enum class Room { kNone, kReserve, kTable };

  // Gives up the reserve, and then memory of table after table, because
  // something has failed as `why` says: the device is full.
  absl::StatusOr<Room> MakeRoom(const absl::Status& why) {
    if (updated_tables_ == nullptr) return Room::kNone;
    if (updated_tables_->FreeReserve()) return Room::kReserve;
    ASSIGN_OR_RETURN(const bool made, updated_tables_->MakeRoom(why));
    return made ? Room::kTable : Room::kNone;
  }

  // Runs `pass` until the device has memory for it. A pass that found too
  // little has changed no variable and no row, unless the updates were reached.
  template <typename Pass>
  auto RunWithRoom(StagedBatch& staged, Pass pass) -> decltype(pass()) {
    has_updated_ = false;
    while (true) {
      auto result = pass();
      if (!absl::IsResourceExhausted(result.status()) || has_updated_ ||
          &staged != last_staged_) {
        return result;
      }
      ASSIGN_OR_RETURN(const Room room, MakeRoom(result.status()));
      if (room == Room::kNone) return result;
      if (room == Room::kTable) {
        RETURN_IF_ERROR(StageAgain(staged));
      }
    }
  }

  // Stages the present batch, now that the rows of a table have other places,
  // and reads its rows that are on the host, as the caller did.
  absl::Status StageAgain(StagedBatch& staged) {
    RETURN_IF_ERROR(Stage(*batch_, staged));
    for (const StagedBatch::Rows& rows : staged.rows()) {
      RETURN_IF_ERROR(updated_tables_->Pull(rows.table, rows.ids, rows.values));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<BatchResult> Train(StagedBatch& staged, uint64_t seed,
                                    const GradientSinks& sinks) {
    return model().device_training()->Train(
        staged, seed,
        {.update =
             [this](absl::Span<const DeviceTraining::Rows> rows) {
               return Update(rows);
             },
         .rows = sinks.rows});
  }

  absl::Status Update(absl::Span<const DeviceTraining::Rows> rows) {
    has_updated_ = true;
    RETURN_IF_ERROR(updated_.Update());
    if (rows.empty()) return absl::OkStatus();
    return updated_tables_->Update(rows);
  }

  DeviceVariables& updated_;
  DeviceTables* const updated_tables_;
  const StagedBatch* last_trained_ = nullptr;
  // The batch that was staged last, and where.
  const StagedBatch* last_staged_ = nullptr;
  const Batch* batch_ = nullptr;
  bool has_updated_ = false;  // true once the last pass's updates have begun
};

}  // namespace

std::unique_ptr<Model> UpdateOnDevice(std::unique_ptr<Model> model,
                                      DeviceVariables& variables,
                                      DeviceTables* tables) {
  return std::make_unique<UpdatingModel>(std::move(model), variables, tables);
}

}  // namespace parasol
