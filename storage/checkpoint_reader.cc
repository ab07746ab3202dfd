#include "storage/checkpoint_reader.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/checkpoint_manifest.h"
#include "storage/checkpoint_name.h"
#include "storage/durable_file.h"
#include "storage/remote/remote_files.h"
#include "storage/remote_checkpoints.h"
#include "storage/shard_chain.h"
#include "storage/shard_key.h"

namespace parasol {
namespace {

// How often a checkpoint may be replaced while it is being opened.
constexpr int kMaxAttempts = 5;

using Piece = ShardChain::Piece;

class ShardedCheckpointReader : public CheckpointReader {
 public:
  ShardedCheckpointReader(std::string directory, std::string manifest_bytes,
                          durable::CheckpointManifest manifest,
                          std::optional<ShardNumber> shard)
      : directory_(std::move(directory)),
        local_(directory_),
        manifest_bytes_(std::move(manifest_bytes)),
        manifest_(std::move(manifest)),
        shard_(shard),
        places_(ChainsOf(manifest_)),
        chains_(places_.size()) {}

  // Opens the chains that are needed for certain; checks the others' sizes.
  absl::Status Start(const CheckpointReader* older) {
    RETURN_IF_ERROR(CheckSizes());
    if (IsUri(directory_)) {
      ASSIGN_OR_RETURN(scratch_, LocalScratch::Make(directory_));
      local_ = absl::StrCat(scratch_->path(), "/",
                            CheckpointName(manifest_.global_step()));
    }
    absl::MutexLock lock(&mu_);
    RETURN_IF_ERROR(HasChainAt(shard_) ? OpenChain(shard_->shard, older)
                                       : OpenAll(older));
    // With another number of shards what a shard needs may be in any file.
    if (HasChainAt(shard_) && !IsOwn(*chains_[shard_->shard], *shard_)) {
      RETURN_IF_ERROR(OpenAll());
    }
    return CheckNotReplaced();
  }

  absl::Status CheckSizes() const {
    if (IsUri(directory_)) return CheckRemoteCheckpoint(directory_, manifest_);
    for (const durable::CheckpointFile& file : manifest_.file()) {
      const std::string path = ListedPath(directory_, file.name());
      const absl::StatusOr<uint64_t> bytes = FileSize(path);
      if (absl::IsNotFound(bytes.status())) {
        return absl::DataLossError(absl::StrCat(path, ": is missing"));
      }
      RETURN_IF_ERROR(bytes.status());
      if (*bytes != file.bytes()) {
        return absl::DataLossError(absl::StrCat(
            path, ": has ", *bytes, " bytes, should have ", file.bytes()));
      }
    }
    return absl::OkStatus();
  }

  const durable::CheckpointManifest& manifest() const override {
    return manifest_;
  }

  absl::StatusOr<int64_t> ReadElements(absl::string_view variable, int array,
                                       int64_t first,
                                       absl::Span<float> out) const override {
    ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                     PiecesOf(variable, array, first, out.size()));
    int64_t updates = 0;
    for (const Piece& piece : pieces) {
      const size_t count = std::min<size_t>(out.size(), piece.end() - first);
      RETURN_IF_ERROR(
          Explain(piece.file->Read(*piece.extent, first, out.first(count))));
      updates = std::max(updates, piece.extent->updates);
      out.remove_prefix(count);
      first += count;
    }
    return updates;
  }

  absl::Status ReadRows(absl::string_view table,
                        RowVisit visit) const override {
    RETURN_IF_ERROR(CheckHasTable(table));
    ASSIGN_OR_RETURN(const Chains chains, AllChains());
    return ReadRowsOf(chains, TablePrefix(table), visit);
  }

  absl::Status ReadRowsFor(absl::string_view table, const ShardNumber& shard,
                           RowVisit visit) const override {
    RETURN_IF_ERROR(CheckHasTable(table));
    ASSIGN_OR_RETURN(const Chains chains, ChainsFor(shard));
    return ReadRowsOf(chains, TablePrefix(table), visit);
  }

  absl::Status ReadCountsFor(absl::string_view table, const ShardNumber& shard,
                             CountVisit visit) const override {
    RETURN_IF_ERROR(CheckHasTable(table));
    ASSIGN_OR_RETURN(const Chains chains, ChainsFor(shard));
    for (const ShardChain* chain : chains) {
      RETURN_IF_ERROR(Explain(chain->ReadCounts(TablePrefix(table), visit)));
    }
    return absl::OkStatus();
  }

  absl::Status ReadNewerRows(const durable::CheckpointManifest& older,
                             absl::string_view table, RowVisit visit,
                             RemovedVisit removed) const override {
    RETURN_IF_ERROR(CheckHasTable(table));
    const auto common = FilesInCommon(older, manifest_);
    if (!common.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(
          directory_, ": does not continue the checkpoint of step ",
          older.global_step()));
    }
    ASSIGN_OR_RETURN(const Chains chains, AllChains());
    const std::string prefix = TablePrefix(table);
    for (size_t i = 0; i < chains.size(); ++i) {
      RETURN_IF_ERROR(
          Explain(chains[i]->ReadRows(prefix, visit, removed, (*common)[i])));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<DedupEntry>> ReadDedup(
      uint32_t shard, uint32_t num_shards) const override {
    const ShardNumber number = {.shard = shard, .num_shards = num_shards};
    ASSIGN_OR_RETURN(const Chains chains, ChainsFor(number));
    std::vector<DedupEntry> entries;
    for (const ShardChain* chain : chains) {
      auto of_chain = chain->ReadDedup(number);
      RETURN_IF_ERROR(Explain(of_chain.status()));
      entries.insert(entries.end(), of_chain->begin(), of_chain->end());
    }
    std::sort(entries.begin(), entries.end(),
              [](const DedupEntry& a, const DedupEntry& b) {
                return a.worker_incarnation < b.worker_incarnation;
              });
    return entries;
  }

  absl::StatusOr<std::optional<JournalPlace>> JournalOf(
      uint32_t shard, uint32_t num_shards) const override {
    const ShardNumber number = {.shard = shard, .num_shards = num_shards};
    ASSIGN_OR_RETURN(const Chains chains, ChainsFor(number));
    std::optional<JournalPlace> place;
    for (const ShardChain* chain : chains) {
      if (IsOwn(*chain, number)) place = chain->journal();
    }
    return place;
  }

  absl::StatusOr<std::vector<ShardJournal>> Journals() const override {
    ASSIGN_OR_RETURN(const Chains chains, AllChains());
    std::vector<ShardJournal> journals;
    for (const ShardChain* chain : chains) {
      if (!chain->writer() || !chain->journal()) continue;
      journals.push_back({*chain->writer(), *chain->journal()});
    }
    return journals;
  }

  absl::Status Verify() const override {
    for (const ShardChain* chain : OpenedChains()) {
      RETURN_IF_ERROR(Explain(chain->Verify()));
    }
    return absl::OkStatus();
  }

  uint64_t bytes_read() const override {
    uint64_t bytes = 0;
    for (const ShardChain* chain : OpenedChains()) bytes += chain->bytes_read();
    return bytes;
  }

  std::shared_ptr<const ShardFile> Opened(
      const durable::CheckpointFile& sought) const override {
    if (scratch_ == nullptr) return nullptr;
    absl::MutexLock lock(&mu_);
    for (size_t i = 0; i < chains_.size(); ++i) {
      if (chains_[i] == nullptr) continue;
      for (int j = 0; j < places_[i].count; ++j) {
        if (IsSameFile(manifest_.file(places_[i].first + j), sought)) {
          return chains_[i]->files()[j].file;
        }
      }
    }
    return nullptr;
  }

 private:
  using Chains = std::vector<const ShardChain*>;

  // A checkpoint lists its files in the order of the shards that wrote them. A
  // worker's file comes after the files of all ps (hybrid strategy).
  bool HasChainAt(const std::optional<ShardNumber>& shard) const {
    return shard.has_value() && shard->shard < shard->num_shards &&
           shard->shard < places_.size();
  }
  static bool IsOwn(const ShardChain& chain, const ShardNumber& shard) {
    return chain.writer() == shard;
  }

  absl::Status OpenChain(size_t i,
                         const CheckpointReader* older = nullptr) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    auto found = ShardChain::Open(local_, manifest_, places_[i],
                                  [&](const durable::CheckpointFile& file) {
                                    return OpenFile(file, older);
                                  });
    if (!found.ok() && scratch_ != nullptr) {
      RETURN_IF_ERROR(found.status()) << directory_;
    }
    ASSIGN_OR_RETURN(auto opened, std::move(found));
    for (const ShardChain::File& file : opened->files()) {
      RETURN_IF_ERROR(CheckTables(file.file->index()))
          << ListedPath(directory_, file.name);
    }
    chains_[i] = std::move(opened);
    for (const Piece& piece : chains_[i]->pieces()) {
      pieces_[piece.extent->key.array_prefix].push_back(piece);
    }
    return SortPieces();
  }

  // Opens a file; one of a store is brought here before, unless `older` has it.
  absl::StatusOr<std::shared_ptr<const ShardFile>> OpenFile(
      const durable::CheckpointFile& file,
      const CheckpointReader* older) const {
    if (older != nullptr && scratch_ != nullptr) {
      if (auto opened = older->Opened(file)) return opened;
    }
    if (scratch_ != nullptr) {
      const std::string copy = ListedPath(local_, file.name());
      std::error_code error;  // BringFile() has one, too
      std::filesystem::create_directory(ParentPath(copy), error);
      RETURN_IF_ERROR(
          BringFile(ListedPath(directory_, file.name()), file.bytes(), copy));
    }
    return ShardFile::Open(local_, file);
  }

  absl::Status OpenAll(const CheckpointReader* older = nullptr) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (size_t i = 0; i < chains_.size(); ++i) {
      if (chains_[i] != nullptr) continue;
      RETURN_IF_ERROR(OpenChain(i, older));
    }
    return absl::OkStatus();
  }

  Chains OpenedChains() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    Chains chains;
    for (const auto& chain : chains_) {
      if (chain != nullptr) chains.push_back(chain.get());
    }
    return chains;
  }

  absl::StatusOr<Chains> AllChains() const {
    if (OpenedChains().size() < places_.size()) {
      absl::MutexLock lock(&mu_);
      RETURN_IF_ERROR(Explain(OpenAll()));
      RETURN_IF_ERROR(CheckNotReplaced());
    }
    return OpenedChains();
  }

  // The chains in which something of a shard may be, apart from elements.
  absl::StatusOr<Chains> ChainsFor(const ShardNumber& shard) const {
    if (HasChainAt(shard)) {
      absl::MutexLock lock(&mu_);
      if (chains_[shard.shard] == nullptr) {
        RETURN_IF_ERROR(Explain(OpenChain(shard.shard)));
        RETURN_IF_ERROR(CheckNotReplaced());
      }
      const ShardChain* const chain = chains_[shard.shard].get();
      if (IsOwn(*chain, shard)) return Chains{chain};
    }
    return AllChains();
  }

  absl::Status ReadRowsOf(const Chains& chains, const std::string& prefix,
                          RowVisit visit) const {
    for (const ShardChain* chain : chains) {
      RETURN_IF_ERROR(Explain(chain->ReadRows(prefix, visit)));
    }
    return absl::OkStatus();
  }

  // The pieces that have elements [first, first + count), in order.
  absl::StatusOr<std::vector<Piece>> PiecesOf(absl::string_view variable,
                                              int array, int64_t first,
                                              size_t count) const {
    absl::MutexLock lock(&mu_);
    const std::string prefix = ArrayPrefix(variable, array);
    auto pieces = FindPieces(prefix, first, count);
    for (size_t i = 0; i < chains_.size() && !pieces.has_value(); ++i) {
      if (chains_[i] != nullptr) continue;
      RETURN_IF_ERROR(Explain(OpenChain(i)));
      RETURN_IF_ERROR(CheckNotReplaced());
      pieces = FindPieces(prefix, first, count);
    }
    if (pieces.has_value()) return *std::move(pieces);
    return absl::NotFoundError(
        absl::StrCat("checkpoint of step ", manifest_.global_step(),
                     ": has no element ", first, " of array ", array, " of ",
                     variable, ", or not ", count, " from there on"));
  }

  // nullopt: the chains that are open don't have all of them.
  std::optional<std::vector<Piece>> FindPieces(const std::string& prefix,
                                               int64_t first,
                                               size_t count) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<Piece> found;
    if (count == 0) return found;
    const auto pieces = pieces_.find(prefix);
    if (pieces == pieces_.end()) return std::nullopt;
    auto piece = std::upper_bound(
        pieces->second.begin(), pieces->second.end(), first,
        [](int64_t element, const Piece& p) { return element < p.end(); });
    const int64_t end = first + static_cast<int64_t>(count);
    for (; piece != pieces->second.end() && piece->first() <= first; ++piece) {
      found.push_back(*piece);
      first = piece->end();
      if (first >= end) return found;
    }
    return std::nullopt;
  }

  const durable::CheckpointTable* FindTable(absl::string_view prefix) const {
    for (const durable::CheckpointTable& table : manifest_.table()) {
      if (TablePrefix(table.name()) == prefix) return &table;
    }
    return nullptr;
  }

  absl::Status CheckHasTable(absl::string_view table) const {
    if (FindTable(TablePrefix(table)) != nullptr) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("checkpoint of step ",
                                            manifest_.global_step(),
                                            ": has no table ", table));
  }

  // The manifest says how large rows are.
  absl::Status CheckTables(const ShardIndex& index) const {
    for (const ShardIndex::Table& rows : index.tables) {
      const durable::CheckpointTable* table = FindTable(rows.prefix);
      if (table == nullptr) {
        return absl::DataLossError(
            absl::StrCat("has rows of a table that the manifest lacks: ",
                         absl::CHexEscape(rows.prefix)));
      }
      const uint64_t floats = FloatsOfRow(*table);
      if (rows.floats > 0 && rows.floats != floats) {
        return absl::DataLossError(
            absl::StrCat("has rows of ", rows.floats, " float32 of table ",
                         table->name(), "; the manifest says ", floats));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SortPieces() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (auto& [prefix, pieces] : pieces_) {
      std::sort(
          pieces.begin(), pieces.end(),
          [](const Piece& a, const Piece& b) { return a.first() < b.first(); });
      for (size_t i = 1; i < pieces.size(); ++i) {
        if (pieces[i].first() < pieces[i - 1].end()) {
          return absl::DataLossError(absl::StrCat(
              directory_, ": element ", pieces[i].first(), " of array \"",
              absl::CHexEscape(prefix), "\" is in its files twice"));
        }
      }
    }
    return absl::OkStatus();
  }

  // The files that were opened are the ones that the manifest lists.
  //   NotFound     the checkpoint was removed meanwhile.
  //   Unavailable  it was replaced, or can't be read now.
  absl::Status CheckNotReplaced() const {
    ASSIGN_OR_RETURN(const std::string now, ReadManifestBytes(directory_));
    if (now == manifest_bytes_) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat(directory_, ": was replaced while it was being read"));
  }

  // A checkpoint that was removed or replaced under our eyes is no damage.
  absl::Status Explain(const absl::Status& status) const {
    if (!absl::IsDataLoss(status)) return status;
    const absl::Status replaced = CheckNotReplaced();
    return absl::IsDataLoss(replaced) || replaced.ok() ? status : replaced;
  }

  const std::string directory_;
  std::string local_;                      // Place of the files that are opened
  std::unique_ptr<LocalScratch> scratch_;  // null: they are not brought there
  const std::string manifest_bytes_;
  const durable::CheckpointManifest manifest_;
  const std::optional<ShardNumber> shard_;
  const std::vector<FileChain> places_;

  // Held while a chain is opened, which whoever waits for it needs, too.
  mutable absl::Mutex mu_;
  // Null: not opened yet. A chain that is open stays so.
  mutable std::vector<std::unique_ptr<const ShardChain>> chains_
      ABSL_GUARDED_BY(mu_);
  // Pieces of each array in the open chains, ascending; the key is
  // ArrayPrefix().
  mutable std::map<std::string, std::vector<Piece>> pieces_
      ABSL_GUARDED_BY(mu_);
};

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenOnce(
    const std::string& directory, const std::string& manifest_bytes,
    std::optional<ShardNumber> shard, const CheckpointReader* older) {
  ASSIGN_OR_RETURN(durable::CheckpointManifest manifest,
                   DecodeManifestIn(directory, manifest_bytes));
  auto reader = std::make_unique<ShardedCheckpointReader>(
      directory, manifest_bytes, std::move(manifest), shard);
  RETURN_IF_ERROR(reader->Start(older));
  return reader;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenStable(
    const std::string& directory, std::optional<ShardNumber> shard,
    const CheckpointReader* older) {
  ASSIGN_OR_RETURN(std::string manifest, ReadManifestBytes(directory));
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    absl::StatusOr<std::unique_ptr<CheckpointReader>> reader =
        OpenOnce(directory, manifest, shard, older);
    if (reader.ok()) return reader;
    // It may have been removed or replaced under our eyes, which is no damage.
    ASSIGN_OR_RETURN(std::string manifest_now, ReadManifestBytes(directory));
    if (manifest_now == manifest) return reader;
    manifest = std::move(manifest_now);
  }
  return absl::UnavailableError(
      absl::StrCat(directory, ": was replaced ", kMaxAttempts,
                   " times while it was being opened"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& directory, const CheckpointReader* older) {
  return OpenStable(directory, std::nullopt, older);
}

absl::StatusOr<std::unique_ptr<CheckpointReader>>
CheckpointReader::OpenForShard(const std::string& directory,
                               const ShardNumber& shard) {
  return OpenStable(directory, shard, nullptr);
}

}  // namespace parasol
