#ifndef PARASOL_CLUSTER_CHECK_ID_COLUMNS_H_
#define PARASOL_CLUSTER_CHECK_ID_COLUMNS_H_

#include <map>
#include <string>
#include <vector>

#include "cluster/check/job_report.h"
#include "cluster/check/value_counts.h"
#include "ml/input/feature/value.h"
#include "proto/job.pb.h"

namespace parasol {

// The different values of a data set's columns, by the columns' names.
using CountsByColumn = std::map<std::string, ValueCounts>;

// Adds a record's values of a column to its report; to `counts` all of them, or
// only texts.
void AddValues(const std::vector<FieldValue>& values, bool counts_numbers,
               ColumnReport& column, ValueCounts& counts);

// Sets the number of different values, and the most frequent ones, of `column`.
void DescribeValues(const ValueCounts& counts, ColumnReport& column);

// Returns what is odd about the values of the columns of ids of `model`, each
// as
// "<field path>: …": vocabularies with values that are never seen, or without
// ones that are; more values than buckets; values that are seen once. Pure.
std::vector<std::string> IdColumnWarnings(const job::Model& model,
                                          const CountsByColumn& counts);

// Returns the vocabularies that the columns of ids of `model` may have: of
// hashed columns with up to 1,000 different values all of these, the most
// frequent one first, and of vocabularies the values that they lack. Pure.
std::vector<VocabularyChange> VocabularyChanges(const job::Model& model,
                                                const CountsByColumn& counts);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CHECK_ID_COLUMNS_H_
