#include "net/http.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace muster::net {
namespace {

TEST(ParseTarget, DecodesPathAndQuery) {
  const auto target = ParseTarget("/v1/jobs/a%20b+c?queue=vision%2Fdetect&name=x+y&flag&=e");
  ASSERT_TRUE(target.has_value());
  EXPECT_EQ(target->path, "/v1/jobs/a b+c");
  const std::map<std::string, std::string> expected = {
      {"queue", "vision/detect"}, {"name", "x y"}, {"flag", ""}, {"", "e"}};
  EXPECT_EQ(target->query, expected);
}

TEST(ParseTarget, AcceptsTheWholeAddressThatProxiesGet) {
  EXPECT_EQ(ParseTarget("http://host:80/a?b=c")->path, "/a");
  EXPECT_EQ(ParseTarget("http://host")->path, "/");
}

TEST(ParseTarget, EmptyPairsAreNoneAndAKeyComesOnce) {
  EXPECT_EQ(ParseTarget("/?a=1&&b=2&")->query.at("b"), "2");
  EXPECT_FALSE(ParseTarget("/?a=1&a=2"));
}

TEST(ParseTarget, RefusesWhatCannotBeMeant) {
  for (const std::string_view bad :
       {"", "*", "a/b", "host:80", "/%", "/%4", "/%zz", "/%4g", "/?a=%", "/?%0=1", "/%00",
        "/?a=%00", "/%0a", "/%7f", "/a b", "/a#b", "/\n", "https://x/"}) {
    const auto target = ParseTarget(bad);
    ASSERT_FALSE(target.has_value()) << bad;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalid);
    EXPECT_FALSE(target.error().hint.empty());
  }
  EXPECT_FALSE(ParseTarget(std::string_view("/a\0b", 4)).has_value());
}

TEST(ParseTarget, TakesBackWhatEncodeTargetMade) {
  Random random(5);
  const auto text = [&random] {
    std::string out;
    for (auto left = random.Between(0, 12); left > 0; --left) {
      const auto byte = static_cast<unsigned char>(random.Between(0x20, 0xff));
      if (byte != 0x7f) out += static_cast<char>(byte);
    }
    return out;
  };
  for (int round = 0; round < 500; ++round) {
    const std::string path = "/" + text();
    const std::map<std::string, std::string> query = {{text(), text()}, {text(), text()}};
    const auto target = ParseTarget(EncodeTarget(path, query));
    ASSERT_TRUE(target.has_value()) << EncodeTarget(path, query);
    EXPECT_EQ(target->path, path);
    EXPECT_EQ(target->query, query);
  }
}

TEST(ParseTarget, NeverFailsOtherwiseThanWithAnError) {
  Random random(6);
  constexpr std::string_view kAlphabet = "/%?&=+#0aF\n ";
  for (int round = 0; round < 5000; ++round) {
    std::string text = "/";
    for (auto left = random.Between(0, 10); left > 0; --left) {
      const auto at = random.Between(0, static_cast<std::int64_t>(kAlphabet.size()) - 1);
      text += kAlphabet[static_cast<std::size_t>(at)];
    }
    const auto target = ParseTarget(text);
    if (!target) continue;
    const auto again = ParseTarget(EncodeTarget(target->path, target->query));
    ASSERT_TRUE(again.has_value()) << text;
    EXPECT_EQ(again->path, target->path);
    EXPECT_EQ(again->query, target->query);
  }
}

TEST(PercentEncode, LeavesOnlyWhatNeedsNoEscape) {
  EXPECT_EQ(PercentEncode("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(PercentEncode("a/b c%\xC3\xA9"), "a%2Fb%20c%25%C3%A9");
  EXPECT_EQ(EncodeQuery({{"a&", "1"}, {"b", "="}}), "a%26=1&b=%3D");
}

TEST(Request, FindsHeadersWhateverTheirCase) {
  Request request;
  request.headers = {{"Content-Type", "a"}, {"content-type", "b"}, {"Content-Typ", "c"}};
  ASSERT_NE(request.Find("CONTENT-TYPE"), nullptr);
  EXPECT_EQ(*request.Find("CONTENT-TYPE"), "a");
  EXPECT_EQ(*request.Find("content-typ"), "c");
  EXPECT_EQ(request.Find("Content"), nullptr);
}

}  // namespace
}  // namespace muster::net
