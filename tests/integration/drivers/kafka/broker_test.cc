// The broker that the other tests rely on, without our own Kafka code.

#include <gtest/gtest.h>

#include "support/kafka_server.h"

namespace weir::test {
namespace {

TEST(KafkaBroker, KeepsWhatItConfirmedThroughKillAndPause) {
  KafkaServer broker;
  broker.Write("things", "ann", "first");
  broker.Kill();
  broker.Start();
  broker.Pause();
  broker.Resume();
  broker.Write("things", "ann", "second");

  const std::vector<KafkaMessage> messages = broker.Read("things");
  ASSERT_EQ(messages.size(), 2);
  EXPECT_EQ(messages[0].payload, "first");
  EXPECT_EQ(messages[0].offset, 0);
  EXPECT_EQ(messages[0].key, "ann");
  EXPECT_EQ(messages[1].payload, "second");
  // One key, one partition.
  EXPECT_EQ(messages[1].partition, messages[0].partition);
  EXPECT_EQ(messages[1].offset, 1);
}

}  // namespace
}  // namespace weir::test
