#include "net/exchange.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace muster::net {
namespace {

std::string Taken(Outbox& outbox) {
  std::string out;
  outbox.Take(out);
  return out;
}

TEST(Frame, KeepsLineBreaksInHeadersFromBecomingHeaders) {
  const auto framed = Frame({.headers = {{"X-Name", "a\r\nSet-Cookie: b"}}}, {});
  EXPECT_EQ(framed.find("\r\nSet-Cookie"), std::string::npos);
  EXPECT_NE(framed.find("X-Name: a  Set-Cookie: b\r\n"), std::string::npos);
}

TEST(Frame, WritesNoBodyWhereThereMustBeNone) {
  const Response response{.body = "abc"};
  const auto head = Frame(response, {.head = true});
  EXPECT_NE(head.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
  const auto empty = Frame({.status = 204, .body = "abc"}, {});
  EXPECT_EQ(empty, "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(Outbox, WakesOnceForAllThatIsNotTakenYet) {
  Outbox outbox({});
  EXPECT_TRUE(outbox.BeginStream(200, "text/plain"));
  EXPECT_FALSE(outbox.Write("a").wake);
  EXPECT_NE(Taken(outbox).find("\r\n\r\n1\r\na\r\n"), std::string::npos);
  EXPECT_TRUE(outbox.Write("b").wake);
}

TEST(Outbox, FirstAnswerCounts) {
  Outbox outbox({});
  EXPECT_TRUE(outbox.Reply({.body = "first"}));
  EXPECT_FALSE(outbox.Reply({.body = "second"}));
  EXPECT_FALSE(outbox.BeginStream(200, "text/plain"));
  EXPECT_FALSE(outbox.Write("third").taken);
  EXPECT_FALSE(outbox.Finish());
  EXPECT_FALSE(outbox.Abandon());
  EXPECT_TRUE(Taken(outbox).ends_with("\r\n\r\nfirst"));
}

TEST(Outbox, RefusesMoreThanTheBoundUntilTheReaderReads) {
  Outbox outbox({});
  outbox.BeginStream(200, "text/plain");
  EXPECT_TRUE(outbox.Write(std::string(kMostQueuedBytes / 2, 'a')).taken);
  EXPECT_FALSE(outbox.Write(std::string(kMostQueuedBytes / 2, 'b')).taken);
  const auto bytes = Taken(outbox);
  EXPECT_EQ(bytes.find('b', bytes.find("\r\n\r\n")), std::string::npos);
  EXPECT_FALSE(outbox.Write(std::string(kMostQueuedBytes / 2, 'b')).taken);  // taken is not sent
  outbox.Sent(bytes.size());
  EXPECT_EQ(outbox.queued(), 0U);
  EXPECT_TRUE(outbox.Write(std::string(kMostQueuedBytes * 2, 'b')).taken);
}

TEST(Outbox, EmptyChunkDoesNotEndTheStream) {
  Outbox outbox({});
  outbox.BeginStream(200, "text/plain");
  Taken(outbox);
  EXPECT_TRUE(outbox.Write("").taken);
  EXPECT_EQ(Taken(outbox), "");
}

TEST(Outbox, StreamsToOldClientsEndWithTheConnection) {
  Outbox outbox({.keep_alive = true, .chunked = false});
  outbox.BeginStream(200, "text/plain");
  outbox.Write("plain");
  outbox.Finish();
  std::string bytes;
  EXPECT_EQ(outbox.Take(bytes), Outbox::End::kClose);
  EXPECT_TRUE(bytes.ends_with("\r\n\r\nplain"));
  EXPECT_NE(bytes.find("Connection: close"), std::string::npos);
}

TEST(Outbox, AbandonedStreamHasNoLastChunk) {
  Outbox outbox({});
  outbox.BeginStream(200, "text/plain");
  outbox.Write("a");
  EXPECT_FALSE(outbox.Abandon());  // a wake-up is already under way
  std::string bytes;
  EXPECT_EQ(outbox.Take(bytes), Outbox::End::kAborted);
  EXPECT_TRUE(bytes.ends_with("1\r\na\r\n"));
}

TEST(Outbox, ChunksOfManyThreadsStayWhole) {
  Outbox outbox({});
  outbox.BeginStream(200, "text/plain");
  Taken(outbox);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&outbox, i] {
      for (int n = 0; n < 500; ++n) {
        EXPECT_TRUE(outbox.Write(std::string(10, static_cast<char>('a' + i))).taken);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const auto bytes = Taken(outbox);
  ASSERT_EQ(bytes.size(), 4U * 500 * 15);
  for (std::size_t at = 0; at < bytes.size(); at += 15) {
    EXPECT_EQ(bytes.substr(at, 3), "a\r\n");
    EXPECT_EQ(bytes.substr(at + 3, 10), std::string(10, bytes[at + 3]));
  }
}

}  // namespace
}  // namespace muster::net
