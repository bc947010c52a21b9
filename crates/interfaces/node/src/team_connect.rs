//! Connects the members of a team, which are at first connected only to the agents.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use fs::{Result, TeamTurn};
use futures_util::future::join_all;
use machine::NodeId;
use real::{Peer, RealMachine};

use crate::client_node::ClientNode;

/// Connects the members of a team with each other. Each listens on its address towards the agents, sends that address
/// to the others, and connects to the members of higher rank. All members get the same outcome.
pub(crate) async fn reach_each_other(client: &ClientNode, turn: &TeamTurn<'_, RealMachine>) -> Result<()> {
    let machine = &client.connection.machine;
    let listening = machine.listen_beside(client.settings.agents[0].address);
    // A failure here is reported at the first barrier, and ends the connecting of all members.
    let own: Result<_> = listening.map(words_of).map_err(Into::into);
    let mut gathered = Vec::with_capacity(WORDS);
    for word in 0..WORDS {
        gathered.push(turn.gather(own.as_ref().map(|words| words[word]).map_err(|error| &**error)).await?);
    }
    let peers = (0..).zip(turn.members()).skip(turn.rank() as usize + 1);
    let calls = peers
        .map(|(rank, &node)| call(machine, node, [gathered[0][rank], gathered[1][rank], gathered[2][rank]]));
    let called: Result<()> = join_all(calls).await.into_iter().collect();
    turn.gather(called.as_ref().map(|()| 0).map_err(|error| &**error)).await.map(drop)
}

async fn call(machine: &RealMachine, node: NodeId, words: [u64; WORDS]) -> Result<()> {
    let address = address_of(words);
    Ok(machine.connect(&[Peer { node, address }]).await?)
}

/// Number of words in which an address is sent.
const WORDS: usize = 3;

/// Encodes an address for the members of a team: the two halves of its IP version 6 form, and the port.
fn words_of(address: SocketAddr) -> [u64; WORDS] {
    let bits = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
    .to_bits();
    [(bits >> 64) as u64, bits as u64, address.port().into()]
}

fn address_of([high, low, port]: [u64; WORDS]) -> SocketAddr {
    let ip = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    (ip.to_canonical(), port as u16).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_encoding_in_words() {
        for address in ["127.0.0.1:1", "10.255.0.1:65535", "[::1]:7420", "[2001:db8::8:800:200c:417a]:80"] {
            let address: SocketAddr = address.parse().expect("an address");
            assert_eq!(address_of(words_of(address)), address);
        }
    }
}
