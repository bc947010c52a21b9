//! Fuzz test: any request log is either rejected with the number of the invalid line, or read, written and read again.

use request_log::{Columns, Limits, Reading, RequestLog};

const EXAMPLES: [&str; 7] = [
    "# starfish requests 1\n0.5 7 /out/a%20b write 0 512\n0.5 3 x read 1000 24 0.25\n0.75 7 - sync\n1 7 x write 0 8\n",
    "rank,start_us,end,path,op,offset,length\n0,1000000,1.5,\"a,b\",write,0,8\n1,2000000,,,sync,,\n",
    "# darshan log version: 3.41\n# DXT, file_id: 1, file_name: /a b\n X_POSIX 0 write 0 0 262144 0.0029 0.0032 [1]\n \
     X_POSIX 0 read 0 0 262144 0.0001 0.0002\n X_MPIIO 0 write 0 0 8 0 0\n",
    "# starfish requests 2\n0.5 7 - begin 2\n0.5 3 - begin 2\n0.5 7 x open a 0 2 512 1\n0.5 3 x open a 1 2 512 1\n\
     1 7 x write-all a 0 0:(8+8)64 0.5 disk-directed\n1 3 x write-all a 0 8:(8+8)64\n2 3 x write 0 8\n\
     2 3 x read-pieces 0:[8,92,(2+2)8,5,1] 1\n3 7 x sync-all a 1\n3 3 x sync-all a 1 0.5\n",
    "fio version 3 iolog\n18 /d/f add\n194 /d/f read 0 4096\n3470 /d/f write 45056 4096\n15221 /d/f sync 32768 0\n",
    "fio version 2 iolog\na open\na wait 1500 0\na read 0 8\na trim 0 8\na write 8 8\na datasync 0 0\n",
    "  8,0    3        1     0.000000000   697  Q  RA 223490 + 56 [kjournald]\n8,0 1 2 0.25 698 Q WS 8 + 8 [fio]\n\
     Skips: 3 forward (129 -   0.5%)\n",
];

fn look_at(bytes: &[u8]) {
    let limits = Limits { requests: 100, files: 10, nodes: 10, selection_nodes: 1000 };
    let titles = Some("time:100ns,took:ms,file,op,offset:sectors,bytes:KiB".to_owned());
    let columns = Columns { titles, ..Columns::default() };
    for columns in [Columns::default(), columns] {
        look_at_with(bytes, &Reading { limits, columns, ..Reading::default() });
    }
}

fn look_at_with(bytes: &[u8], reading: &Reading) {
    match RequestLog::read(bytes, reading) {
        Ok(log) => {
            assert!(log.nodes().iter().all(|node| !node.requests.is_empty()));
            let mut text = Vec::new();
            log.write_to(&mut text).expect("memory");
            let back =
                RequestLog::read(&text[..], &Reading { columns: Columns::default(), ..reading.clone() })
                    .expect("a log that the program has written");
            assert_eq!(back.totals(), log.totals());
            let mut again = Vec::new();
            back.write_to(&mut again).expect("memory");
            assert_eq!(text, again);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[test]
fn request_logs() {
    fuzz::target!("request_logs", |input| {
        look_at(input);
        let examples: Vec<Vec<u8>> = EXAMPLES.iter().map(|text| text.as_bytes().to_vec()).collect();
        look_at(&fuzz::changed(&examples, input));
    });
}
