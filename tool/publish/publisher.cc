#include "tool/publish/publisher.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "cluster/checkpoint/model/checkpoint_job.h"
#include "cluster/job/job_file.h"
#include "storage/durable_file.h"
#include "storage/tensor_files/safetensors_reader.h"
#include "storage/tensor_files/safetensors_writer.h"
#include "storage/tensor_files/tensor_writer.h"
#include "tool/exchange/exported_tensors.h"
#include "tool/exchange/flat_orders.h"
#include "tool/exchange/pytorch_writer.h"
#include "tool/publish/bfloat16_writer.h"

namespace parasol {
namespace {

std::string LayoutName(bool pytorch_layout) {
  return pytorch_layout ? "with --layout=pytorch" : "without --layout";
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0
             ? 0
             : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

absl::Status CheckSameForm(const Publisher::Options& options,
                           const PublishedDirectory& directory) {
  const PublishedVersion* const newest = directory.newest();
  if (newest == nullptr || (newest->type == options.type &&
                            newest->pytorch_layout == options.pytorch_layout)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--output=", options.directory, ": its versions have --dtype=",
      NameOf(newest->type), " ", LayoutName(newest->pytorch_layout),
      "; give the same, or an empty directory"));
}

std::vector<std::string> NamesOf(const StateComparison& comparison,
                                 VersionFormat format) {
  std::vector<std::string> names;
  for (size_t i = 0; i < comparison.tensors.size(); ++i) {
    if (format == VersionFormat::kFull || comparison.changed[i] > 0) {
      names.push_back(comparison.tensors[i].info.name);
    }
  }
  return names;
}

absl::Status AddFile(const std::string& staged, absl::string_view name,
                     PublishedVersion& version) {
  ASSIGN_OR_RETURN(version.files[std::string(name)],
                   FileSize(absl::StrCat(staged, "/", name)));
  return absl::OkStatus();
}

// A base, and the first error of reading it, which is none of the version that
// builds on it: that can be whole.
class NotedBase : public TensorReader {
 public:
  explicit NotedBase(std::unique_ptr<TensorReader> reader)
      : reader_(std::move(reader)) {}

  const absl::Status& error() const { return error_; }
  const std::vector<TensorInfo>& tensors() const override {
    return reader_->tensors();
  }
  absl::Status Read(size_t tensor, uint64_t first,
                    absl::Span<char> out) override {
    absl::Status status = reader_->Read(tensor, first, out);
    error_.Update(status);
    return status;
  }

 private:
  const std::unique_ptr<TensorReader> reader_;
  absl::Status error_;
};

}  // namespace

std::string Describe(const Publication& publication,
                     const std::string& directory) {
  const PublishedVersion& version = publication.version;
  const std::string begin =
      absl::StrCat(directory, "/", VersionName(version.version), ": step ",
                   version.step, ", ");
  if (publication.was_there) {
    return absl::StrCat(begin, "is there already, with these bytes");
  }
  if (!version.base) {
    return absl::StrCat(begin, "whole, ", publication.file_bytes, " bytes");
  }
  return absl::StrCat(
      begin, NameOf(version.format), " on ", VersionName(*version.base), ", ",
      publication.file_bytes, " bytes, ",
      absl::StrFormat(
          "%.2f %% of the %d bytes of its tensors, of which %.2f %% changed",
          Percent(publication.file_bytes, publication.state_bytes),
          publication.state_bytes,
          Percent(publication.changed_bytes, publication.state_bytes)));
}

absl::StatusOr<Publisher> Publisher::Open(const Options& options) {
  ASSIGN_OR_RETURN(PublishedDirectory directory,
                   PublishedDirectory::Open(options.directory));
  RETURN_IF_ERROR(CheckSameForm(options, directory));
  return Publisher(options, std::move(directory));
}

int64_t Publisher::newest_step() const {
  return directory_.newest() == nullptr ? -1 : directory_.newest()->step;
}

absl::StatusOr<Publication> Publisher::Publish(const std::string& checkpoint) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   CheckpointReader::Open(checkpoint));
  RETURN_IF_ERROR(CheckFits(checkpoint, reader->manifest()));
  const absl::StatusOr<Publication> publication =
      PublishState(checkpoint, *reader);
  if (!publication.ok() || publication->was_there) {
    // Frees the disk, too, which may be what was full.
    if (const absl::Status left = directory_.Abandon(); !left.ok()) {
      LOG(WARNING) << left.message();
    }
  }
  if (!absl::IsResourceExhausted(publication.status())) return publication;
  return absl::ResourceExhaustedError(
      absl::StrCat(publication.status().message(),
                   "; nothing was published: make room, and try again"));
}

absl::Status Publisher::CheckFits(
    const std::string& checkpoint,
    const durable::CheckpointManifest& manifest) const {
  const PublishedVersion* const newest = directory_.newest();
  if (newest == nullptr) return absl::OkStatus();
  if (newest->run_id != manifest.run_id()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--output=", options_.directory, ": has versions of job ",
                     newest->job, ", run ", newest->run_id, ", and ",
                     checkpoint, " is of job ", manifest.job().name(), ", run ",
                     manifest.run_id(), "; give an empty directory"));
  }
  if (newest->step <= manifest.global_step()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory_.PathOf(newest->version), ": is of step ",
                   newest->step, ", later than ", checkpoint,
                   "; to go back to that, give an empty --output"));
}

absl::Status Publisher::WriteState(const std::string& checkpoint,
                                   const CheckpointReader& reader) {
  ASSIGN_OR_RETURN(
      const ExportedTensors tensors,
      ExportedTensors::Plan(reader, {.slots = false, .counts = false}));
  const NewTensorWriter file = [this](std::vector<TensorPart> parts) {
    return NewSafetensorsWriter(directory_.NextStatePath(), std::move(parts));
  };
  const NewTensorWriter rounded =
      options_.type != ElementType::kBfloat16
          ? file
          : [&file](const std::vector<TensorPart>& parts) {
              return NewBfloat16Writer(parts, file);
            };
  std::unique_ptr<TensorWriter> writer;
  if (options_.pytorch_layout) {
    ASSIGN_OR_RETURN(const LoadedJob job, JobOfCheckpoint(checkpoint, {}));
    ASSIGN_OR_RETURN(
        writer, NewPyTorchWriter(
                    tensors.parts(),
                    ChannelsFirstOrders(job.job.model(), job.graph), rounded));
  } else {
    ASSIGN_OR_RETURN(writer, rounded(tensors.parts()));
  }
  RETURN_IF_ERROR(tensors.Write(*writer));
  return writer->Finish();
}

std::unique_ptr<TensorReader> Publisher::OpenBase(const TensorReader& state,
                                                  std::string& why) const {
  if (directory_.newest() == nullptr ||
      directory_.ChainLength() >= options_.full_every) {
    return nullptr;
  }
  if (const absl::Status chain = directory_.CheckChain(); !chain.ok()) {
    why = std::string(chain.message());
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<TensorReader>> base =
      OpenSafetensors(directory_.StatePath());
  if (!base.ok()) {
    why = std::string(base.status().message());
    return nullptr;
  }
  // Rows of a table may have come or gone.
  if (!HaveSameTensors(state, **base)) return nullptr;
  return *std::move(base);
}

absl::StatusOr<Publication> Publisher::PublishState(
    const std::string& checkpoint, const CheckpointReader& reader) {
  RETURN_IF_ERROR(WriteState(checkpoint, reader));
  absl::StatusOr<std::unique_ptr<TensorReader>> opened_state =
      OpenSafetensors(directory_.NextStatePath());
  // It is the publisher's own, so the checkpoint is not damaged.
  if (absl::IsDataLoss(opened_state.status())) {
    return absl::FailedPreconditionError(absl::StrCat(
        checkpoint, ": can't be published: ", opened_state.status().message()));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TensorReader> state,
                   std::move(opened_state));
  std::string why_whole;
  std::unique_ptr<TensorReader> opened = OpenBase(*state, why_whole);
  if (opened != nullptr) {
    NotedBase base(std::move(opened));
    const absl::StatusOr<Publication> publication =
        PublishOn(&base, checkpoint, reader.manifest(), *state, "");
    if (base.error().ok()) return publication;
    why_whole = std::string(base.error().message());
  }
  return PublishOn(nullptr, checkpoint, reader.manifest(), *state,
                   std::move(why_whole));
}

absl::StatusOr<Publication> Publisher::PublishOn(
    TensorReader* base, const std::string& checkpoint,
    const durable::CheckpointManifest& manifest, TensorReader& state,
    std::string why_whole) {
  const PublishedVersion* const newest = directory_.newest();
  ASSIGN_OR_RETURN(const StateComparison comparison,
                   CompareStates(state, base));
  if (newest != nullptr && newest->step == manifest.global_step()) {
    const bool is_same =
        StateDigest(newest->tensors) == StateDigest(comparison.tensors);
    const absl::Status chain = directory_.CheckChain();
    if (is_same && chain.ok()) {
      return Publication{.version = *newest, .was_there = true};
    }
    if (is_same) {
      why_whole = std::string(chain.message());
      base = nullptr;
    }
    // A job's last one may have pushes behind its step that one before has not.
    if (!is_same && !manifest.final()) {
      return absl::FailedPreconditionError(absl::StrCat(
          directory_.PathOf(newest->version), ": has step ", newest->step,
          " with other bytes than ", checkpoint, "; give an empty --output"));
    }
  }
  if (base != nullptr &&
      StateDigest(comparison.base) != StateDigest(newest->tensors)) {
    why_whole = absl::StrCat(directory_.StatePath(), ": has other bytes than ",
                             VersionName(newest->version));
    base = nullptr;
  }
  PublishedVersion version = {
      .version = newest == nullptr ? 1 : newest->version + 1,
      .step = manifest.global_step(),
      .run_id = manifest.run_id(),
      .job = manifest.job().name(),
      .type = options_.type,
      .pytorch_layout = options_.pytorch_layout,
      .tensors = comparison.tensors};
  ASSIGN_OR_RETURN(const std::string staged, directory_.Stage());
  RETURN_IF_ERROR(StageSmallest(state, base, comparison, staged, version));
  RETURN_IF_ERROR(directory_.Commit(version));
  if (!why_whole.empty()) {
    LOG(WARNING) << why_whole << "; the next version, "
                 << VersionName(version.version) << ", is whole";
  }
  directory_.Prune(options_.max_to_keep);
  return Publication{
      .version = version,
      .file_bytes = version.files[std::string(kVersionTensors)],
      .state_bytes = comparison.bytes,
      .changed_bytes = version.base ? comparison.changed_bytes : 0};
}

absl::Status Publisher::StageDelta(VersionFormat format, TensorReader& state,
                                   TensorReader& base,
                                   const StateComparison& comparison,
                                   const std::string& staged,
                                   uint64_t& smallest,
                                   PublishedVersion& version) {
  const std::string path = absl::StrCat(staged, "/", NameOf(format));
  RETURN_IF_ERROR(WriteDelta(format, state, base, comparison, path));
  ASSIGN_OR_RETURN(const uint64_t bytes, FileSize(path));
  if (bytes >= smallest) return RemoveTree(path);
  smallest = bytes;
  version.format = format;
  version.base = directory_.newest()->version;
  version.base_state = StateDigest(comparison.base);
  return Rename(path, absl::StrCat(staged, "/", kVersionTensors));
}

absl::Status Publisher::StageSmallest(TensorReader& state, TensorReader* base,
                                      const StateComparison& comparison,
                                      const std::string& staged,
                                      PublishedVersion& version) {
  ASSIGN_OR_RETURN(uint64_t smallest, FileSize(directory_.NextStatePath()));
  for (const VersionFormat format :
       {VersionFormat::kXor, VersionFormat::kOverwrite}) {
    if (base != nullptr && IsWorthEncoding(format, comparison)) {
      RETURN_IF_ERROR(StageDelta(format, state, *base, comparison, staged,
                                 smallest, version));
    }
  }
  if (!version.base) {
    RETURN_IF_ERROR(Rename(directory_.NextStatePath(),
                           absl::StrCat(staged, "/", kVersionTensors)));
  }
  RETURN_IF_ERROR(
      WriteFileDurably(absl::StrCat(staged, "/", kVersionIndex),
                       IndexText(version, NamesOf(comparison, version.format),
                                 comparison.bytes)));
  RETURN_IF_ERROR(AddFile(staged, kVersionTensors, version));
  return AddFile(staged, kVersionIndex, version);
}

}  // namespace parasol
