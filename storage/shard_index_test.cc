#include "storage/shard_index.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rocksdb/options.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table_properties.h"
#include "storage/row_entry.h"
#include "storage/shard_file.h"
#include "storage/shard_key.h"
#include "storage/testing/checkpoint_fixture.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ShardIndex SomeIndex() {
  ShardIndex index;
  index.writer = {.shard = 2, .num_shards = 5};
  for (const char* variable : {"a", "b"}) {
    for (const int64_t first : {0, 65536}) {
      const ElementsKey key = {ArrayPrefix(variable, 1), first};
      EXPECT_OK(index.Add(key.Encode(), std::string(8 + 12, '\1')));
    }
  }
  std::string rows;
  const std::vector<uint64_t> ids = {4, 5};
  const std::vector<float> values(6);
  EXPECT_TRUE(EncodeRows({.ids = ids, .rows = values}, rows));
  EXPECT_OK(index.Add(RowsKey{TablePrefix("t"), 0}.Encode(), rows));
  EXPECT_OK(index.Add(DedupKey{2, 5, 77}.Encode(), "window"));
  EXPECT_OK(index.Add(kHeaderKey, kHeaderValue));
  return index;
}

TEST(ShardIndexTest, DecodingGivesWhatWasEncoded) {
  const ShardIndex index = SomeIndex();
  const auto decoded = ShardIndex::Decode(index.Encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->writer, index.writer);
  ASSERT_EQ(decoded->tables.size(), 1u);
  EXPECT_EQ(decoded->tables[0].prefix, TablePrefix("t"));
  EXPECT_EQ(decoded->tables[0].floats, 3u);
  ASSERT_EQ(decoded->extents.size(), 4u);
  EXPECT_EQ(decoded->extents[3].key.array_prefix, ArrayPrefix("b", 1));
  EXPECT_EQ(decoded->extents[3].key.first, 65536);
  EXPECT_EQ(decoded->extents[3].count, 3);
  EXPECT_EQ(decoded->extents[3].updates, 0x0101010101010101);
  EXPECT_EQ(decoded->Encode(), index.Encode());
}

TEST(ShardIndexTest, AnEmptyIndexOfAnUnknownWriterIsOne) {
  const auto decoded = ShardIndex::Decode(ShardIndex().Encode());
  ASSERT_TRUE(decoded.has_value());
  EXPECT_FALSE(decoded->writer.has_value());
}

TEST(ShardIndexTest, TruncationsAndAlteredBytesDoNoHarm) {
  const std::string bytes = SomeIndex().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto cut = ShardIndex::Decode(bytes.substr(0, size));
    EXPECT_LT(cut.value_or(ShardIndex()).extents.size(), 4u) << size;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string altered = bytes;
    altered[i] = '\xff';
    (void)ShardIndex::Decode(altered);
  }
  EXPECT_FALSE(ShardIndex::Decode(bytes + "x").has_value());
}

using Properties = std::map<std::string, std::string>;

// Writes any bytes as a file's properties.
class GivenProperties : public rocksdb::TablePropertiesCollector,
                        public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit GivenProperties(Properties properties)
      : properties_(std::move(properties)) {}

  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(
      rocksdb::TablePropertiesCollectorFactory::Context) override {
    return new GivenProperties(properties_);  // RocksDB deletes it
  }
  rocksdb::Status AddUserKey(const rocksdb::Slice&, const rocksdb::Slice&,
                             rocksdb::EntryType, rocksdb::SequenceNumber,
                             uint64_t) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* out) override {
    out->insert(properties_.begin(), properties_.end());
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override {
    return {};
  }
  const char* Name() const override { return "GivenProperties"; }

 private:
  const Properties properties_;
};

class ShardFilePropertiesTest : public CheckpointFixture {
 protected:
  // Opens a file without contents that has these properties.
  absl::StatusOr<std::unique_ptr<const ShardFile>> OpenWith(
      const Properties& properties) {
    const std::string path = root() + "/0.sst";
    rocksdb::Options options;
    options.compression = rocksdb::kNoCompression;
    options.table_properties_collector_factories.push_back(
        std::make_shared<GivenProperties>(properties));
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
    EXPECT_TRUE(writer.Open(path).ok());
    EXPECT_TRUE(
        writer.Put(std::string(kHeaderKey), std::string(kHeaderValue)).ok());
    EXPECT_TRUE(writer.Finish().ok());
    const std::string bytes = MustRead(path);
    durable::CheckpointFile file;
    file.set_name("0.sst");
    file.set_bytes(bytes.size());
    file.set_crc32c(Crc32cOf(bytes));
    return ShardFile::Open(root(), file);
  }
};

TEST_F(ShardFilePropertiesTest, APropertyThatCantBeParsedIsDamage) {
  const Properties sound = {
      {kIndexProperty, ShardIndex().Encode()},
      {kJournalProperty, JournalPlace{.journal = 9, .segment = 2}.Encode()},
      {kIncrementProperty, IncrementBase{.bytes = 5, .crc32c = 6}.Encode()}};
  ASSERT_OK_AND_ASSIGN(const auto file, OpenWith(sound));
  EXPECT_EQ(file->journal(), (JournalPlace{.journal = 9, .segment = 2}));
  EXPECT_EQ(file->base(), (IncrementBase{.bytes = 5, .crc32c = 6}));

  const Properties named = {{kIndexProperty, "its index"},
                            {kJournalProperty, "its place in the journal"},
                            {kIncrementProperty, "the file before it"}};
  for (const auto& [property, words] : named) {
    for (const std::string& end : {std::string("x"), std::string()}) {
      Properties altered = sound;
      std::string& bytes = altered[property];
      bytes = end.empty() ? bytes.substr(1) : bytes + end;
      EXPECT_THAT(OpenWith(altered),
                  StatusIs(absl::StatusCode::kDataLoss,
                           AllOf(HasSubstr("0.sst"), HasSubstr(words),
                                 HasSubstr("can't be parsed"))))
          << property << end;
    }
  }
}

}  // namespace
}  // namespace parasol
