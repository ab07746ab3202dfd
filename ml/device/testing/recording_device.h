#ifndef PARASOL_ML_DEVICE_TESTING_RECORDING_DEVICE_H_
#define PARASOL_ML_DEVICE_TESTING_RECORDING_DEVICE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ml/device/recorder.h"
#include "ml/device/testing/lazy_copy_device.h"

namespace parasol {

// A LazyCopyDevice that records as a CUDA device does. While it records, copies
// to the host are only noted, and it refuses what CUDA refuses during a
// capture. Kernels run at once and cannot be noted, so a replay calls `enqueue`
// again and carries out only those copies, orders and events that equal the
// noted ones. A replay in which others occur counts as stale, and the others
// have no effect.
class RecordingDevice : public LazyCopyDevice {
 public:
  int recorded() const { return recorded_; }
  int replayed() const { return replayed_; }
  int stale() const { return stale_; }
  void RefuseToRecord() { refuses_to_record_ = true; }
  void RefuseToReplay() { refuses_to_replay_ = true; }

  Recorder* recorder() override { return &recorder_; }

  absl::Status Order(Stream earlier, Stream later) override {
    if (mode_ == Mode::kRecording && later == Stream::kCompute) {
      return Refuse("an order behind another stream");
    }
    return Enqueue({.kind = Work::Kind::kOrder, .on = earlier, .later = later});
  }
  absl::Status Record(Stream stream, Event& event) override {
    return Enqueue({.kind = Work::Kind::kEvent, .on = stream, .event = &event});
  }
  absl::Status Follow(Event& event, Stream later) override {
    if (mode_ == Mode::kRecording) return Refuse("an order behind an event");
    return LazyCopyDevice::Follow(event, later);
  }
  absl::Status Wait(Event& event) override {
    if (mode_ == Mode::kRecording) return Refuse("a wait");
    return LazyCopyDevice::Wait(event);
  }
  absl::Status Synchronize() override {
    if (mode_ == Mode::kRecording) return Refuse("a wait");
    return LazyCopyDevice::Synchronize();
  }

 private:
  enum class Mode { kPlain, kRecording, kReplaying };

  // Work other than kernels.
  struct Work {
    enum class Kind { kCopy, kOrder, kEvent };
    Kind kind = Kind::kCopy;
    Stream on = Stream::kCompute;
    Stream later = Stream::kCompute;
    Event* event = nullptr;
    const void* from = nullptr;
    void* to = nullptr;
    size_t bytes = 0;

    friend bool operator==(const Work&, const Work&) = default;
  };

  struct Noted : Recorder::Recording {
    std::function<absl::Status()> enqueue;
    std::vector<Work> work;
  };

  class FakeRecorder : public Recorder {
   public:
    explicit FakeRecorder(RecordingDevice& device) : device_(device) {}

    absl::StatusOr<std::unique_ptr<Recording>> Record(
        const std::function<absl::Status()>& enqueue) override {
      return device_.RecordWork(enqueue);
    }
    absl::Status Replay(Recording& recording) override {
      return device_.ReplayWork(static_cast<Noted&>(recording));
    }
    int64_t replayed() const override { return device_.replayed(); }

   private:
    RecordingDevice& device_;
  };

  absl::StatusOr<void*> Allocate(size_t bytes, bool on_host) override {
    if (mode_ == Mode::kRecording) return Refuse("an allocation");
    return LazyCopyDevice::Allocate(bytes, on_host);
  }
  absl::Status CopyBytes(Stream stream, const void* from, void* to,
                         size_t bytes) override {
    return Enqueue({.on = stream, .from = from, .to = to, .bytes = bytes});
  }

  // Breaks the recording, which stays broken.
  absl::Status Refuse(const char* what) {
    broken_ = absl::UnavailableError(what);
    return broken_;
  }

  absl::Status Enqueue(const Work& work) {
    switch (mode_) {
      case Mode::kPlain:
        return CarryOut(work);
      case Mode::kRecording:
        work_.push_back(work);
        // Copies on the compute stream run at once, as the kernels do.
        return work.on == Stream::kCompute && work.kind == Work::Kind::kCopy
                   ? CarryOut(work)
                   : absl::OkStatus();
      case Mode::kReplaying:
        break;
    }
    if (next_ < work_.size() && work_[next_++] == work) return CarryOut(work);
    is_stale_ = true;
    return absl::OkStatus();
  }

  absl::Status CarryOut(const Work& work) {
    switch (work.kind) {
      case Work::Kind::kCopy:
        return LazyCopyDevice::CopyBytes(work.on, work.from, work.to,
                                         work.bytes);
      case Work::Kind::kOrder:
        return LazyCopyDevice::Order(work.on, work.later);
      case Work::Kind::kEvent:
        return LazyCopyDevice::Record(work.on, *work.event);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Recorder::Recording>> RecordWork(
      const std::function<absl::Status()>& enqueue) {
    if (refuses_to_record_) return absl::UnavailableError("no recording");
    work_.clear();
    broken_ = absl::OkStatus();
    mode_ = Mode::kRecording;
    absl::Status status = enqueue();
    mode_ = Mode::kPlain;
    status.Update(broken_);
    if (!status.ok()) return status;
    ++recorded_;
    auto noted = std::make_unique<Noted>();
    noted->enqueue = enqueue;
    noted->work = std::move(work_);
    return noted;
  }

  absl::Status ReplayWork(const Noted& recording) {
    if (refuses_to_replay_) return absl::UnavailableError("no replay");
    work_ = recording.work;
    next_ = 0;
    is_stale_ = false;
    mode_ = Mode::kReplaying;
    const absl::Status status = recording.enqueue();
    mode_ = Mode::kPlain;
    ++replayed_;
    if (is_stale_ || next_ < work_.size()) ++stale_;
    return status;
  }

  FakeRecorder recorder_{*this};
  Mode mode_ = Mode::kPlain;
  bool refuses_to_record_ = false, refuses_to_replay_ = false;
  absl::Status broken_;
  std::vector<Work> work_;  // recorded, or to be replayed
  size_t next_ = 0;         // next index in `work_` in a replay
  bool is_stale_ = false;
  int recorded_ = 0, replayed_ = 0, stale_ = 0;
};

}  // namespace parasol

#endif  // PARASOL_ML_DEVICE_TESTING_RECORDING_DEVICE_H_
