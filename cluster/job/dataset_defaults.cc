#include "cluster/job/dataset_defaults.h"

#include <cstdint>

#include "base/set_default.h"

namespace parasol {
namespace {

constexpr int64_t kTrainShuffleBuffer = 10000;

// The fields of `from` that `to` does not set, all but `file`.
template <typename Format>
void TakeReading(const Format& from, Format& to) {
  Format merged = from;
  merged.clear_file();
  // A list that is set replaces the other, as in every default.
  const auto* descriptor = Format::descriptor();
  const auto* reflection = to.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* field = descriptor->field(i);
    const bool is_set = field->is_repeated()
                            ? reflection->FieldSize(to, field) > 0
                            : reflection->HasField(to, field);
    if (is_set) reflection->ClearField(&merged, field);
  }
  to.MergeFrom(merged);
}

// Archives and named arrays are files alike.
job::ArrayDataset WithoutNamed(job::ArrayDataset arrays) {
  arrays.clear_array();
  return arrays;
}

void TakeReadingFromTrain(const job::Dataset& train, job::Dataset& eval) {
  if (train.kind_case() != eval.kind_case()) return;
  switch (train.kind_case()) {
    case job::Dataset::kLibsvm:
      TakeReading(train.libsvm(), *eval.mutable_libsvm());
      break;
    case job::Dataset::kCsv:
      TakeReading(train.csv(), *eval.mutable_csv());
      break;
    case job::Dataset::kTfrecord:
      TakeReading(train.tfrecord(), *eval.mutable_tfrecord());
      break;
    case job::Dataset::kArray:
      TakeReading(WithoutNamed(train.array()), *eval.mutable_array());
      break;
    case job::Dataset::kParquet:
      TakeReading(train.parquet(), *eval.mutable_parquet());
      break;
    case job::Dataset::kCustom:
      // Another source reads other parameters.
      if (eval.custom().type().empty() ||
          eval.custom().type() == train.custom().type()) {
        TakeReading(train.custom(), *eval.mutable_custom());
      }
      break;
    case job::Dataset::kIdx:
    case job::Dataset::kCifar:
      if (eval.image().mean().empty() && !train.image().mean().empty()) {
        *eval.mutable_image()->mutable_mean() = train.image().mean();
      }
      if (eval.image().stddev().empty() && !train.image().stddev().empty()) {
        *eval.mutable_image()->mutable_stddev() = train.image().stddev();
      }
      break;
    case job::Dataset::kCriteo:
    case job::Dataset::kRatings:
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  if (train.has_on_corrupt()) {
    PARASOL_SET_DEFAULT(eval, on_corrupt, train.on_corrupt());
  }
}

// Returns true if a label is any number: −1 is no name for a class then.
bool HasNumbersForLabels(const job::Loss& loss) {
  return loss.has_mean_squared_error() || loss.has_mean_absolute_error() ||
         loss.has_huber() || loss.has_poisson() ||
         loss.has_pairwise_logistic() || loss.has_custom();
}

void FillFormat(const job::Loss& loss, job::Dataset& dataset) {
  if (dataset.has_libsvm()) {
    PARASOL_SET_DEFAULT(*dataset.mutable_libsvm(), first_index, 1);
    PARASOL_SET_DEFAULT(*dataset.mutable_libsvm(), keep_negative_labels,
                        HasNumbersForLabels(loss));
  }
  if (dataset.has_csv()) {
    PARASOL_SET_DEFAULT(*dataset.mutable_csv(), delimiter, ",");
    PARASOL_SET_DEFAULT(*dataset.mutable_csv(), skip_lines, 0);
  }
  if (dataset.has_image()) {
    PARASOL_SET_DEFAULT(*dataset.mutable_image(), random_crop_padding, 0);
    PARASOL_SET_DEFAULT(*dataset.mutable_image(), random_flip, false);
  }
  if (dataset.has_split()) {
    PARASOL_SET_DEFAULT(*dataset.mutable_split(), from, 0);
    PARASOL_SET_DEFAULT(*dataset.mutable_split(), to, 1);
    PARASOL_SET_DEFAULT(*dataset.mutable_split(), seed, 0);
  }
}

void FillDataset(const job::Loss& loss, int64_t shuffle_buffer,
                 job::Dataset& dataset) {
  FillFormat(loss, dataset);
  if (!dataset.has_global_batch_size()) {
    PARASOL_SET_DEFAULT(dataset, batch_size, 32);
  }
  PARASOL_SET_DEFAULT(dataset, shuffle_buffer, shuffle_buffer);
  PARASOL_SET_DEFAULT(dataset, prefetch_batches, 2);
  PARASOL_SET_DEFAULT(dataset, decode_threads, 2);
  PARASOL_SET_DEFAULT(dataset, auto_shard, job::Dataset::AUTO);
  PARASOL_SET_DEFAULT(dataset, on_corrupt, job::Dataset::STOP);
}

void FillIdColumn(job::IdColumn& column) {
  if (column.missing() == job::IdColumn::MISSING_UNSPECIFIED) {
    column.set_missing(job::IdColumn::OWN_ID);
  }
  if (column.has_hash())
    PARASOL_SET_DEFAULT(*column.mutable_hash(), buckets, 0);
  if (column.has_vocabulary()) {
    PARASOL_SET_DEFAULT(*column.mutable_vocabulary(), out_of_vocabulary, 1);
  }
}

}  // namespace

void FillDatasetDefaults(job::Job& job) {
  if (job.has_train() && job.has_eval()) {
    TakeReadingFromTrain(job.train(), *job.mutable_eval());
  }
  const job::Loss& loss = job.model().loss();
  if (job.has_train()) {
    FillDataset(loss, kTrainShuffleBuffer, *job.mutable_train());
  }
  if (job.has_eval()) FillDataset(loss, 0, *job.mutable_eval());
}

void FillModelInputDefaults(job::Model& model) {
  for (job::ModelInput& input : *model.mutable_input()) {
    if (input.has_ids()) {
      for (job::IdColumn& column : *input.mutable_ids()->mutable_column()) {
        FillIdColumn(column);
      }
    }
    if (input.ids().has_sequence()) {
      job::IdSequence& sequence = *input.mutable_ids()->mutable_sequence();
      PARASOL_SET_DEFAULT(sequence, separator, "|");
      PARASOL_SET_DEFAULT(sequence, keep, job::IdSequence::LAST);
    }
    if (!input.has_dense()) continue;
    job::DenseInput& dense = *input.mutable_dense();
    if (dense.shape().empty() && !dense.column().empty()) {
      dense.add_shape(dense.column_size());
    }
    for (job::NumericColumn& column : *dense.mutable_column()) {
      PARASOL_SET_DEFAULT(column, log1p, false);
      PARASOL_SET_DEFAULT(column, mean, 0.0);
      PARASOL_SET_DEFAULT(column, stddev, 1.0);
    }
  }
}

}  // namespace parasol
