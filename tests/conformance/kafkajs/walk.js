// Walks through kafkajs against one broker: admin, producing, consuming, a group of two, transactions.
//
// usage: node walk.js HOST:PORT PREFIX. It prints one JSON object: the name of each step and what came back. It judges
// nothing; tests/conformance/test_kafkajs.py does.
'use strict'

const { CompressionTypes, Kafka, logLevel } = require('kafkajs')

const [address, prefix] = process.argv.slice(2)
const kafka = new Kafka({ clientId: 'kafkajs', brokers: [address], logLevel: logLevel.NOTHING })
const steps = {}
const open = []

const text = (value) => (value === null ? null : value.toString())
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function connected(client) {
  await client.connect()
  open.push(client)
  return client
}

// Notes what a call gives, or the error that it ends with.
async function note(step, call) {
  try {
    steps[step] = await call()
  } catch (error) {
    steps[step] = `error: ${error.type || error.name}`
  }
}

// Waits until something holds: members of a group and brokers learn of changes a moment later.
async function until(holds) {
  for (let left = 600; left > 0; left--) {
    if (await holds()) return
    await sleep(50)
  }
  throw new Error(`never: ${holds}`)
}

// A consumer that keeps what it reads and which partitions it has.
async function consumer(groupId, topic, options = {}) {
  const made = await connected(
    kafka.consumer({ groupId, heartbeatInterval: 200, maxWaitTimeInMs: 100, rebalanceTimeout: 30000, ...options })
  )
  const seen = { read: [], partitions: [], stop: () => made.disconnect() }
  made.on(made.events.GROUP_JOIN, ({ payload }) => (seen.partitions = payload.memberAssignment[topic] || []))
  await made.subscribe({ topics: [topic], fromBeginning: true })
  await made.run({
    eachMessage: async ({ partition, message }) => {
      const headers = Object.fromEntries(Object.entries(message.headers || {}).map(([k, v]) => [k, text(v)]))
      const record = { partition, key: text(message.key), value: text(message.value), headers }
      seen.read.push({ ...record, offset: message.offset, timestamp: message.timestamp })
    },
  })
  return seen
}

// Creates a topic and waits until the broker knows it. kafkajs fails if it does not at once, as with Apache Kafka.
async function create(admin, topic, numPartitions, configEntries = []) {
  const made = await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: false })
  const partitions = () => admin.fetchTopicMetadata({ topics: [topic] }).then((found) => found.topics[0].partitions)
  const ready = (rows) => rows.length === numPartitions && rows.every((row) => row.leader >= 0)
  await until(() => partitions().then(ready, () => false))
  return made
}

async function topics(admin) {
  const topic = `${prefix}-topics`
  await note('create', () => create(admin, topic, 3, [{ name: 'retention.ms', value: '60000' }]))
  await note('create again', () => create(admin, topic, 3))
  await note('create a bad name', () => admin.createTopics({ topics: [{ topic: `${prefix} bad` }] }))
  await note('listed', async () => (await admin.listTopics()).includes(topic))
  await note('more partitions', () => admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] }))
  await until(async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length === 5)
  await note('metadata', async () => {
    const [found] = (await admin.fetchTopicMetadata({ topics: [topic] })).topics
    return found.partitions.map((row) => [row.partitionErrorCode, row.replicas.length, row.isr.length])
  })
  await note('metadata of nothing', () => admin.fetchTopicMetadata({ topics: [`${prefix}-nothing`] }))
  const setting = async () => {
    const asked = { resources: [{ type: 2, name: topic, configNames: ['retention.ms'] }], includeSynonyms: false }
    return (await admin.describeConfigs(asked)).resources[0].configEntries.map((row) => row.configValue)
  }
  await note('setting', setting)
  const change = [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '70000' }] }]
  await note('alter', async () => (await admin.alterConfigs({ resources: change })).resources[0].errorCode)
  await until(async () => (await setting())[0] === '70000')
  const wrong = [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: 'soon' }] }]
  await note('alter wrongly', () => admin.alterConfigs({ resources: wrong }))
  await note('cluster', async () => {
    const { brokers, controller, clusterId } = await admin.describeCluster()
    return { brokers: brokers.length, controller: brokers[0].nodeId === controller, named: clusterId.length > 0 }
  })
  await note('delete', () => admin.deleteTopics({ topics: [topic] }))
  await until(async () => !(await admin.listTopics()).includes(topic))
}

async function records(admin) {
  const topic = `${prefix}-records`
  await create(admin, topic, 3)
  const producer = await connected(kafka.producer({ idempotent: true }))
  const headers = { trace: 'abc', none: '' }
  const first = { key: 'ann', value: 'tea', headers, timestamp: '1700000000000' }
  const others = [{ key: 'bob', value: null }, { value: 'to one place', partition: 2 }]
  // kafkajs writes a wrong largest timestamp where only some records of a batch have one.
  await note('produced', async () =>
    [...(await producer.send({ topic, messages: [first] })), ...(await producer.send({ topic, messages: others }))]
  )
  const many = [...Array(200).keys()].map((n) => ({ key: `k${n}`, value: `value ${n} `.repeat(20) }))
  await note('compressed', () => producer.send({ topic, messages: many, compression: CompressionTypes.GZIP }))
  const group = `${prefix}-readers`
  const seen = await consumer(group, topic)
  await until(() => seen.read.length >= 203)
  await seen.stop()
  steps.consumed = seen.read.filter((record) => !(record.key || '').startsWith('k'))
  steps['consumed compressed'] = seen.read.filter((r) => (r.key || '').startsWith('k') && r.value.length > 140).length
  await note('ends', async () => (await admin.fetchTopicOffsets(topic)).map((row) => [row.partition, +row.high]))
  await note('committed', async () => {
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    return found.partitions.map((row) => [row.partition, +row.offset])
  })
  await note('by time', async () => {
    const rows = await admin.fetchTopicOffsetsByTimestamp(topic, 1700000000001)
    return rows.map((row) => [row.partition, +row.offset])
  })
  // Each takes 5 s: kafkajs lets a consumer of its own finish a long poll.
  const other = `${prefix}-reset`
  const offsetOf = async (groupId) => (await admin.fetchOffsets({ groupId, topics: [topic] }))[0].partitions[0].offset
  await Promise.all([
    admin.setOffsets({ groupId: group, topic, partitions: [{ partition: 0, offset: '1' }] }),
    admin.resetOffsets({ groupId: other, topic, earliest: true }),
  ])
  await note('set and reset', async () => [await offsetOf(group), await offsetOf(other)])
  await note('described', async () => {
    const [found] = (await admin.describeGroups([group])).groups
    return [found.errorCode, found.state, found.members.length]
  })
  await note('groups', async () => (await admin.listGroups()).groups.some((row) => row.groupId === group))
  await note('delete group', async () => (await admin.deleteGroups([group]))[0].errorCode)
  const partitions = [{ partition: 2, offset: '-1' }]
  await note('delete records', () => admin.deleteTopicRecords({ topic, partitions }))
  await note('low', async () => {
    const found = (await admin.fetchTopicOffsets(topic)).find((row) => row.partition === 2)
    return found.low === found.high && +found.high > 0
  })
}

async function groups(admin) {
  const topic = `${prefix}-groups`
  await create(admin, topic, 4)
  const group = `${prefix}-shared`
  const first = await consumer(group, topic)
  await until(() => first.partitions.length === 4)
  const second = await consumer(group, topic)
  await until(() => first.partitions.length === 2 && second.partitions.length === 2)
  steps.shared = [...first.partitions, ...second.partitions].sort()
  const producer = await connected(kafka.producer())
  const everywhere = (value) => [0, 1, 2, 3].map((partition) => ({ partition, value }))
  await producer.send({ topic, messages: everywhere('shared') })
  await until(() => first.read.length + second.read.length >= 4)
  steps['read by two'] = [first.read.length, second.read.length]
  await note('two members', async () => {
    const [found] = (await admin.describeGroups([group])).groups
    return [found.state, found.protocolType, found.members.map((row) => row.clientId)]
  })
  await note('delete a group with members', () => admin.deleteGroups([group]))
  await second.stop()
  await until(() => first.partitions.length === 4)
  await producer.send({ topic, messages: everywhere('alone') })
  await until(() => first.read.filter((record) => record.value === 'alone').length === 4)
  steps['read alone'] = first.read.filter((record) => record.value === 'alone').length
  await first.stop()
}

async function transactions(admin) {
  const topic = `${prefix}-transactions`
  await create(admin, topic, 1)
  const settings = { transactionalId: `${prefix}-id`, maxInFlightRequests: 1, idempotent: true }
  const producer = await connected(kafka.producer(settings))
  const write = async (value, end, group) => {
    const transaction = await producer.transaction()
    await transaction.send({ topic, messages: [{ value }] })
    const partitions = [{ partition: 0, offset: '7' }]
    if (group) await transaction.sendOffsets({ consumerGroupId: group, topics: [{ topic, partitions }] })
    await transaction[end]()
  }
  const group = `${prefix}-copied`
  const offset = async () => +(await admin.fetchOffsets({ groupId: group, topics: [topic] }))[0].partitions[0].offset
  await note('abort', () => write('aborted', 'abort', group))
  await note('offset after abort', offset)
  await note('commit', () => write('committed', 'commit', group))
  await until(async () => (await offset()) === 7)
  await note('once more', () => write('last', 'commit'))
  const committed = await consumer(`${prefix}-committed`, topic, { readUncommitted: false })
  const everything = await consumer(`${prefix}-everything`, topic, { readUncommitted: true })
  await until(() => committed.read.length >= 2 && everything.read.length >= 3)
  steps['read committed'] = committed.read.map((record) => record.value)
  steps['read uncommitted'] = everything.read.map((record) => record.value)
  const late = await producer.transaction()
  await late.send({ topic, messages: [{ value: 'late' }] })
  await connected(kafka.producer({ ...settings, retry: { retries: 8, initialRetryTime: 50 } })).then((other) =>
    other.transaction().then((transaction) => transaction.abort())
  )
  await note('fenced', () => late.commit())
}

async function main() {
  const admin = await connected(kafka.admin())
  await Promise.all([topics, records, groups, transactions].map((part) => part(admin)))
}

main()
  .then(() => Promise.allSettled(open.map((client) => client.disconnect())))
  .then(() => {
    console.log(JSON.stringify(steps))
    process.exit(0)
  })
  .catch((error) => {
    console.error(error.stack, JSON.stringify(steps))
    process.exit(1)
  })
