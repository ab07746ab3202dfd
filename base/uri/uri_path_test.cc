#include "base/uri/uri_path.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace parasol {
namespace {

TEST(UriPathTest, PathsAndUrisAreToldApart) {
  EXPECT_TRUE(IsUri("s3://b/k"));
  EXPECT_TRUE(IsUri("hdfs://host:1/k"));
  EXPECT_FALSE(IsUri("/a/b"));
  EXPECT_FALSE(IsUri("://b"));
  EXPECT_FALSE(IsUri("a/s3://b"));
}

TEST(UriPathTest, WhatIsInADirectoryHasItsOptions) {
  EXPECT_EQ(JoinedPath("/a", "x"), "/a/x");
  EXPECT_EQ(JoinedPath("/a/", "x/y"), "/a/x/y");
  EXPECT_EQ(JoinedPath("s3://b/d", "x"), "s3://b/d/x");
  EXPECT_EQ(JoinedPath("s3://b/d/?region=r&scheme=http", "x/y"),
            "s3://b/d/x/y?region=r&scheme=http");
  EXPECT_EQ(JoinedPath("s3://b", "x"), "s3://b/x");
  EXPECT_EQ(JoinedPath("s3://b/d", "gs://c/x"), "gs://c/x");
}

TEST(UriPathTest, APathIsTakenApartAsItWasJoined) {
  for (const char* directory :
       {"/a/b", "s3://b/d", "s3://b/d?region=r", "gs://b"}) {
    const std::string path = JoinedPath(directory, "ckpt-000000000001");
    EXPECT_EQ(ParentPath(path), directory);
    EXPECT_EQ(LastName(path), "ckpt-000000000001");
  }
  EXPECT_EQ(ParentPath("name"), "");
  EXPECT_EQ(LastName("name"), "name");
  EXPECT_EQ(LastName("/a/b?c=d"), "b?c=d") << "no URI has no options";
}

}  // namespace
}  // namespace parasol
