#include "ml/input/object/object_uri.h"

#include <string>

#include "absl/status/status.h"
#include "base/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ObjectUriTest, HasAStoreAndAPathInIt) {
  struct Case {
    std::string uri, store, path;
  };
  const Case cases[] = {{"s3://b/a/b.csv", "s3://b", "b/a/b.csv"},
                        {"s3://b/a b%20+ü.csv", "s3://b", "b/a b%20+ü.csv"},
                        {"s3://b/d/", "s3://b", "b/d"},
                        {"s3://b/x?region=r&endpoint_override=h:1",
                         "s3://b?region=r&endpoint_override=h:1", "b/x"},
                        {"gs://b/x", "gs://b", "b/x"},
                        {"s3://b/x///", "s3://b", "b/x"},
                        {"gs://anonymous@b/x", "gs://anonymous@b", "b/x"},
                        {"hdfs://host:8020/d/x", "hdfs://host:8020/", "/d/x"},
                        {"hdfs:///d/x?user=u", "hdfs:///?user=u", "/d/x"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.uri);
    ASSERT_OK_AND_ASSIGN(const ObjectUri uri, ParseObjectUri(c.uri));
    EXPECT_EQ(uri.Store(), c.store);
    EXPECT_EQ(uri.path, c.path);
    ASSERT_OK_AND_ASSIGN(const ObjectUri again,
                         ParseObjectUri(uri.Of(uri.path)));
    EXPECT_EQ(again.Store(), c.store);
    EXPECT_EQ(again.path, c.path);
  }
}

TEST(ObjectUriTest, AQuestionMarkWithoutOptionsIsAWildcard) {
  for (const char* uri : {"s3://b/day_?.csv", "s3://b/?", "s3://b/a=?/b",
                          "s3://b/d?/region=5/x", "s3://b/a?b=c/1=2?"}) {
    ASSERT_OK_AND_ASSIGN(const ObjectUri parts, ParseObjectUri(uri));
    EXPECT_EQ(parts.options, "") << uri;
    EXPECT_EQ(parts.Of(parts.path), uri);
  }
  ASSERT_OK_AND_ASSIGN(const ObjectUri both,
                       ParseObjectUri("s3://b/day_?.csv?region=r"));
  EXPECT_EQ(both.path, "b/day_?.csv");
  EXPECT_EQ(both.options, "region=r");
}

TEST(ObjectUriTest, WhatIsNoObjectIsRefusedByName) {
  struct Case {
    std::string uri, says;
  };
  const Case cases[] = {{"http://h/x", "http://: web servers have only"},
                        {"file:///x", "file://"},
                        {"s3a://b/x", "s3a://"},
                        {"s3:///x", "has no bucket"},
                        {"s3://b/x?regoin=r", "did you mean \"region\""},
                        {"gs://b/x?region=r", "no option region"}};
  for (const Case& c : cases) {
    EXPECT_THAT(ParseObjectUri(c.uri),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.says)))
        << c.uri;
  }
}

TEST(ObjectUriTest, CredentialsAreRefusedAndNotShown) {
  EXPECT_THAT(
      ParseObjectUri("s3://AKIA7:pass/word@bucket/x"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("no bucket has a ':'"), HasSubstr("credentials"),
                     Not(HasSubstr("AKIA7")), Not(HasSubstr("pass")))));
  EXPECT_THAT(
      ParseObjectUri("s3://AKIA7:password@bucket/x"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("bucket"), HasSubstr("credentials"),
                     Not(HasSubstr("AKIA7")), Not(HasSubstr("password")))));
  EXPECT_THAT(
      ParseObjectUri("s3://b/x?secret_key=password&region=r"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("secret_key"), Not(HasSubstr("password")))));
}

TEST(ObjectUriTest, PathsAreRelativeToAFolderThatMayBeAnObjects) {
  EXPECT_EQ(JoinedPath("/d", "x.csv"), "/d/x.csv");
  EXPECT_EQ(JoinedPath("/d", "/x.csv"), "/x.csv");
  EXPECT_EQ(JoinedPath("/d", "s3://b/x"), "s3://b/x");
  EXPECT_EQ(JoinedPath("s3://b", "x"), "s3://b/x");
  EXPECT_EQ(JoinedPath("s3://b/d/", "a?.csv"), "s3://b/d/a?.csv");
  EXPECT_EQ(JoinedPath("s3://b/d?region=r", "x"), "s3://b/d/x?region=r");
  EXPECT_EQ(JoinedPath("s3://b/d", "/x"), "/x");
  EXPECT_FALSE(IsUri("a/b"));
  EXPECT_FALSE(IsUri("://x"));
  EXPECT_FALSE(IsUri("a b://x"));
  EXPECT_TRUE(IsUri("s3://"));
}

}  // namespace
}  // namespace parasol
